import type { Arena } from '#millrace/memory/arena.js'
import { ADM, BLOCKED, CLAIMED, COUNT, LIVE, STATE, UNTIL } from '#millrace/memory/layout.js'
import type { Machine } from './machine.js'
import { type Forbidden, GRANULE_MS, msOf, type Op, type Scenario } from './scenario.js'

/** What the ledger knows of blocks. */
export interface Blocks {
  /** When the key's block ends, 0 where it has none. */
  untilOf(key: number): number
  /** Whose name the way bears. */
  keyOf(way: number): number | undefined
  fail(what: Forbidden, how: string): void
}

/** Whether blocks give way when they may, and only then, and what stays of them is what was asked for. */
export class BlockJudge {
  readonly #scenario: Scenario
  readonly #machine: Machine
  readonly #arena: Arena
  readonly #blocks: Blocks

  constructor(scenario: Scenario, machine: Machine, arena: Arena, blocks: Blocks) {
    this.#scenario = scenario
    this.#machine = machine
    this.#arena = arena
    this.#blocks = blocks
  }

  /**
   * The way's block has ended by that operation. The key whose block gave way, if one did. Threads that are at it at once may
   * each end one.
   */
  gaveWay(way: number, after: number, op: Op | undefined, isAlone: boolean): number | undefined {
    const key = this.#blocks.keyOf(way)
    const isClaim = (after & STATE) === CLAIMED
    const isForAnother = op?.do === 'block' && op.key !== key
    if (key === undefined || !(isClaim || isForAnother)) return undefined
    if (this.#blocks.untilOf(key) <= this.#latestMs) return undefined // it was over
    const { ways, sets } = this.#arena.shape
    const blocked = this.#countBlocked(way) + 1 + (isClaim && isForAnother ? 1 : 0)
    if (isAlone && blocked <= ways / sets)
      this.#blocks.fail('given way', `key ${key}, with ${blocked} blocked`)
    return key
  }

  /** UNTIL of the way has been written by that operation. */
  seesUntil(way: number, op: Op): void {
    const key = this.#blocks.keyOf(way)
    const v = this.#word(way, ADM)
    const isBlocked = (v & STATE) === LIVE && (v & COUNT) === BLOCKED
    if (isBlocked && key !== undefined && op.do === 'block' && op.key !== key)
      this.#blocks.fail('wrong block', `key ${key} until the end of another key's`)
  }

  judgeAtRest(): void {
    const { shape } = this.#arena
    if (this.#countBlocked() > shape.ways / shape.sets)
      this.#blocks.fail('too many blocks', `${this.#countBlocked()} of ${shape.ways}`)
    for (let way = 0; way < shape.ways; way++) {
      const key = this.#blocks.keyOf(way)
      if (key === undefined || (this.#word(way, ADM) & STATE) !== LIVE) continue
      const asked = this.#blocks.untilOf(key)
      // Notes are whole milliseconds.
      const found = (this.#word(way, ADM) & COUNT) === BLOCKED ? Math.floor(msOf(this.#word(way, UNTIL))) : 0
      if (found !== asked && Math.max(found, asked) > this.#latestMs)
        this.#blocks.fail('wrong block', `key ${key} until ${found} ms, not ${asked}`)
    }
  }

  /** Ways that are blocked now, but this one. */
  #countBlocked(except = -1): number {
    let blocked = 0
    for (let way = 0; way < this.#arena.shape.ways; way++) {
      const v = this.#word(way, ADM)
      const isBlocked = (v & STATE) === LIVE && (v & COUNT) === BLOCKED
      if (way !== except && isBlocked && msOf(this.#word(way, UNTIL)) > this.#latestMs) blocked++
    }
    return blocked
  }

  /** The latest moment that any clock shows. */
  get #latestMs(): number {
    const { times, ahead = [] } = this.#scenario
    return (times[this.#machine.getNote(0)]! + Math.max(0, ...ahead)) * GRANULE_MS
  }

  #word(way: number, field: number): number {
    const { waysAt, wayWords } = this.#arena.shape
    return this.#machine.words[waysAt + way * wayWords + field]!
  }
}
