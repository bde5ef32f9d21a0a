import { ADM, BLOCKED, CLAIMED, COUNT, LIVE, STATE, UNTIL } from '#millrace/memory/layout.js'
import type { Arena } from '#millrace/memory/records.js'
import type { Machine } from './machine.js'
import { type Forbidden, latestMs, msOf, type Op, type Scenario } from './scenario.js'

/** The part of the ledger that the judge of blocks reads. */
export interface Blocks {
  /** The end of the key's block, 0 if the key is not blocked. */
  untilOf(key: number): number
  /** The key whose name the way has. */
  keyOf(way: number): number | undefined
  fail(what: Forbidden, how: string): void
}

/**
 * Judges that a block is evicted only when it may be, and that each remaining block has the end that was
 * requested.
 */
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
   * The current operation has ended the block of the way. Returns the key of an evicted block, or undefined.
   * Concurrent threads may each evict one.
   */
  evictedKey(way: number, after: number, op: Op | undefined, isAlone: boolean): number | undefined {
    const key = this.#blocks.keyOf(way)
    const isClaim = (after & STATE) === CLAIMED
    const isForAnother = op?.do === 'block' && op.key !== key
    if (key === undefined || !(isClaim || isForAnother)) return undefined
    if (this.#blocks.untilOf(key) <= latestMs(this.#scenario, this.#machine)) return undefined // the block had expired
    const { ways, sets } = this.#arena.shape
    const blocked = this.#countBlocked(way) + 1 + (isClaim && isForAnother ? 1 : 0)
    if (isAlone && blocked <= ways / sets)
      this.#blocks.fail('evicted block', `key ${key}, with ${blocked} blocked`)
    return key
  }

  /** The current operation has written the UNTIL word of the way. */
  checkUntil(way: number, op: Op): void {
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
      const requested = this.#blocks.untilOf(key)
      // Notes hold whole milliseconds.
      const found = (this.#word(way, ADM) & COUNT) === BLOCKED ? Math.floor(msOf(this.#word(way, UNTIL))) : 0
      if (found !== requested && Math.max(found, requested) > latestMs(this.#scenario, this.#machine))
        this.#blocks.fail('wrong block', `key ${key} until ${found} ms, not ${requested}`)
    }
  }

  /** The number of ways that are blocked now, not counting `except`. */
  #countBlocked(except = -1): number {
    let blocked = 0
    for (let way = 0; way < this.#arena.shape.ways; way++) {
      const v = this.#word(way, ADM)
      const isBlocked = (v & STATE) === LIVE && (v & COUNT) === BLOCKED
      if (
        way !== except &&
        isBlocked &&
        msOf(this.#word(way, UNTIL)) > latestMs(this.#scenario, this.#machine)
      )
        blocked++
    }
    return blocked
  }

  #word(way: number, field: number): number {
    const { waysAt, wayWords } = this.#arena.shape
    return this.#arena.words[waysAt + way * wayWords + field]!
  }
}
