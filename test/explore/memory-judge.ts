import type { Arena } from '#millrace/memory/arena.js'
import {
  ADM,
  BUCKETS,
  CLAIMED,
  COUNT,
  HI,
  LIVE,
  MAX_TOTAL,
  NAMED,
  NAMES_AT,
  NODE_COUNT,
  STATE,
  TICK,
} from '#millrace/memory/layout.js'
import { nodesAbove } from './nodes.js'
import type { Forbidden, Scenario } from './scenario.js'

/** The part of the ledger that the judge of memory reads. Ticks are indices into `ticks`. */
export interface Known {
  readonly ticks: readonly number[]
  /** Whether a thread has died. */
  anyDead(): boolean
  /** The key whose name the way has. */
  keyOf(way: number): number | undefined
  /** Whether a thread died with the way claimed before the scenario began. */
  isLost(way: number): boolean
  /** Units of that key and tick. */
  admitted(key: number, tick: number): number
  penalties(key: number, tick: number): number
  /** The tick of a bucket, in a cell whose tick word is `newest`. */
  tickAt(slot: number, bucket: number, newest: number): number
  fail(what: Forbidden, how: string): void
}

/** Judges that the cells in memory count all that was admitted, and that each key has one cell. */
export class MemoryJudge {
  readonly #scenario: Scenario
  readonly #arena: Arena
  readonly #known: Known
  readonly #buckets: number

  constructor(scenario: Scenario, arena: Arena, known: Known) {
    this.#scenario = scenario
    this.#arena = arena
    this.#known = known
    this.#buckets = scenario.buckets ?? 1
  }

  /** The way has become LIVE: no other live way may have the same name. */
  checkLive(way: number): void {
    const { shape, words } = this.#arena
    const base = (of: number) => shape.waysAt + of * shape.wayWords
    for (let other = 0; other < shape.ways; other++) {
      if (other === way || (words[base(other) + ADM]! & STATE) !== LIVE) continue
      const same =
        words[NAMES_AT + other] === words[NAMES_AT + way] && words[base(other) + HI] === words[base(way) + HI]
      if (same) this.#known.fail('two cells', `ways ${way} and ${other}`)
    }
  }

  judgeAtRest(): void {
    const { shape, words } = this.#arena
    for (let way = 0; way < shape.ways; way++) {
      const base = shape.waysAt + way * shape.wayWords
      const v = words[base + ADM]!
      const state = v & STATE
      const isStuck = (state === CLAIMED || state === NAMED) && !this.#known.isLost(way)
      if (isStuck && !this.#known.anyDead()) this.#known.fail('stuck way', `way ${way}`)
      const key = this.#known.keyOf(way)
      if (state === LIVE && key !== undefined) this.#judgeCell(base, v, key)
    }
  }

  #judgeCell(base: number, v: number, key: number): void {
    const { words } = this.#arena
    const { ticks } = this.#known
    const { ring, modulus } = this.#arena.shape
    const newest = words[base + TICK]!
    let sum = 0
    for (let i = 0; i < ticks.length; i++) {
      const age = newest - (ticks[i]! % modulus)
      if (age < 0 || age > this.#buckets) continue
      const b = words[base + BUCKETS + (ticks[i]! % ring)]!
      const counted = this.#known.tickAt(ticks[i]! % ring, b, newest) === i ? b & COUNT : 0
      const admitted = this.#known.admitted(key, i)
      if (counted < admitted)
        this.#known.fail('lost charge', `key ${key}, tick ${ticks[i]}: ${counted} of ${admitted}`)
      // A dead thread may have charged a penalty without committing it.
      const penalties = this.#known.anyDead() ? 0 : this.#known.penalties(key, i)
      const used = admitted + penalties
      sum += this.#scenario.edge === 'smooth' && age === this.#buckets ? 0 : used
    }
    this.#judgeNodes(base, key, newest)
    if ((v & COUNT) < Math.min(sum, MAX_TOTAL))
      this.#known.fail('low total', `key ${key}: ${v & COUNT}, ${sum} were admitted`)
  }

  /** Every node counts at least the units that were admitted in the ticks of the window below it. */
  #judgeNodes(base: number, key: number, newest: number): void {
    const { shape } = this.#arena
    const { ticks } = this.#known
    const admitted = new Map<string, number>()
    for (let i = 0; i < ticks.length; i++) {
      const age = newest - (ticks[i]! % shape.modulus)
      const units = this.#known.admitted(key, i)
      if (age < 0 || age > this.#buckets || units === 0) continue
      const slot = ticks[i]! % shape.ring
      const lap = Math.floor(ticks[i]! / shape.ring) & 255
      for (const node of nodesAbove(shape, slot)) {
        const below = (admitted.get(`${node} ${lap}`) ?? 0) + units
        admitted.set(`${node} ${lap}`, below)
        const x = this.#arena.words[base + BUCKETS + shape.ring + node]!
        // A node of a later lap counts the head of this window. Smaller nodes count the rest of the window's
        // tail.
        const isLater = shape.sums === 'fenwick' && x >>> 24 !== lap
        if (!isLater && (x >>> 24 !== lap || (x & NODE_COUNT) < below))
          this.#known.fail('lost charge', `key ${key}, node ${node}: ${below} admitted in the window`)
      }
    }
  }
}
