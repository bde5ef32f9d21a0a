import {
  ADM,
  BUCKETS,
  CELL_RECORD,
  CLAIMED,
  CONVERTING,
  COUNT,
  HASH,
  HI,
  LIVE,
  MAX_TOTAL,
  NAMED,
  NAMES_AT,
  NODE_COUNT,
  PAST,
  PAST_WORDS,
  STATE,
  TICK,
} from '#millrace/memory/layout.js'
import type { Arena } from '#millrace/memory/records.js'
import { nodesAbove } from './nodes.js'
import type { Forbidden, Scenario } from './scenario.js'
import type { Timeline } from './timeline.js'
import { ADMITTED, CARRIED, PENALTIES, type Units } from './units.js'

/** The part of the ledger that the judge of memory reads. */
export interface Known {
  readonly timeline: Timeline
  readonly units: Units
  /** Whether a thread has died. */
  anyDead(): boolean
  /** The latest reading of any clock. */
  latestMs(): number
  /** The key whose name the way has. */
  keyOf(way: number): number | undefined
  /** Whether a thread died with the way claimed before the scenario began. */
  isLost(way: number): boolean
  fail(what: Forbidden, how: string): void
}

/** Judges that the cells in memory count all that was admitted, and that each key has one cell. */
export class MemoryJudge {
  readonly #scenario: Scenario
  readonly #arena: Arena
  readonly #known: Known

  constructor(scenario: Scenario, arena: Arena, known: Known) {
    this.#scenario = scenario
    this.#arena = arena
    this.#known = known
  }

  /** The way has become LIVE: no other live way may have the same name. */
  checkLive(way: number): void {
    const { shape, words } = this.#arena
    const base = (of: number) => shape.waysAt + of * shape.wayWords
    for (let other = 0; other < shape.ways; other++) {
      if (other === way || (words[base(other) + ADM]! & STATE) !== LIVE) continue
      const same =
        words[NAMES_AT + other] === words[NAMES_AT + way] &&
        ((words[base(other) + HI]! ^ words[base(way) + HI]!) & HASH) === 0
      if (same) this.#known.fail('two cells', `ways ${way} and ${other}`)
    }
  }

  judgeAtRest(): void {
    this.judgeStates()
    const { shape, words } = this.#arena
    for (let way = 0; way < shape.ways; way++) {
      const base = shape.waysAt + way * shape.wayWords
      const v = words[base + ADM]!
      const key = this.#known.keyOf(way)
      if ((v & STATE) === LIVE && key !== undefined) this.#judgeCell(base, v, key)
    }
  }

  /** No way is still claimed or named. */
  judgeStates(): void {
    const { shape, words } = this.#arena
    for (let way = 0; way < shape.ways; way++) {
      const state = words[shape.waysAt + way * shape.wayWords + ADM]! & STATE
      const isStuck = (state === CLAIMED || state === NAMED) && !this.#known.isLost(way)
      if (isStuck && !this.#known.anyDead()) this.#known.fail('stuck way', `way ${way}`)
    }
  }

  #judgeCell(base: number, v: number, key: number): void {
    const { words } = this.#arena
    const { timeline, units } = this.#known
    const name = words[base + HI]!
    const record = name & CELL_RECORD
    const isConverting = (name & CONVERTING) !== 0
    // A cell that is being converted may still have the tick of its old record.
    const newest = isConverting ? -1 : timeline.tickOfWord(record, words[base + TICK]!)
    const now = Math.max(newest, timeline.tickAt(record, this.#known.latestMs()))
    const buckets = timeline.bucketsOf(record)
    const isSmooth = this.#scenario.edge === 'smooth'
    // A dead thread may have charged a penalty without committing it.
    const kinds = this.#known.anyDead() ? ([ADMITTED] as const) : ([ADMITTED, PENALTIES] as const)
    const before = units.chargedBefore(kinds, key, record, now, isSmooth ? buckets : buckets + 1)
    let sum = before
    if (!isConverting) {
      sum += units.charged(kinds, key, record, newest, isSmooth ? buckets : buckets + 1)
      this.#judgeBuckets(base, key, record, newest, before)
      this.#judgeNodes(base, key, record, newest)
    }
    // The thread that completes a conversion adds the past of the way to the total.
    const total = (v & COUNT) + (isConverting ? this.#pastOf(base) : 0)
    if (total < Math.min(sum, MAX_TOTAL))
      this.#known.fail('low total', `key ${key}: ${total}, ${sum} were admitted`)
  }

  #pastOf(base: number): number {
    const { shape, words } = this.#arena
    const way = (base - shape.waysAt) / shape.wayWords
    return words[shape.pastAt + way * PAST_WORDS + PAST]! & COUNT
  }

  /** The buckets of the window count all that was admitted in them, and `before` by earlier records. */
  #judgeBuckets(base: number, key: number, record: number, newest: number, before: number): void {
    const { units } = this.#known
    let counts = 0
    let sum = before
    for (const { place, slot, tick } of this.#ticksOf(record, newest)) {
      const b = this.#arena.words[base + BUCKETS + slot]!
      const word = this.#arena.words[base + TICK]!
      const counted = this.#known.timeline.placeOfBucket(slot, b, word) === place ? b & COUNT : 0
      const admitted = units.inTick(ADMITTED, key, place)
      if (counted < admitted)
        this.#known.fail('lost charge', `key ${key}, tick ${tick}: ${counted} of ${admitted}`)
      counts += counted
      sum += admitted
    }
    if (counts < Math.min(sum, COUNT))
      this.#known.fail('lost charge', `key ${key}: ${counts} of ${sum}, ${before} by earlier records`)
  }

  /** Every node counts at least the units of the ticks of the window below it. */
  #judgeNodes(base: number, key: number, record: number, newest: number): void {
    const { shape } = this.#arena
    const { units } = this.#known
    const charged = new Map<string, number>()
    for (const { place, slot, lap } of this.#ticksOf(record, newest)) {
      const more = units.inTick(ADMITTED, key, place) + units.inTick(CARRIED, key, place)
      if (more === 0) continue
      for (const node of nodesAbove(shape, slot)) {
        const below = (charged.get(`${node} ${lap}`) ?? 0) + more
        charged.set(`${node} ${lap}`, below)
        const x = this.#arena.words[base + BUCKETS + shape.ring + node]!
        // A node of a later lap counts the head of this window. Smaller nodes count the rest of the window's
        // tail.
        const isLater = shape.sums === 'fenwick' && x >>> 24 !== lap
        if (!isLater && (x >>> 24 !== lap || (x & NODE_COUNT) < below))
          this.#known.fail('lost charge', `key ${key}, node ${node}: ${below} admitted in the window`)
      }
    }
  }

  /** The ticks of the window that ends in the tick `newest` of a record. */
  *#ticksOf(
    record: number,
    newest: number,
  ): Generator<{ place: number; tick: number; slot: number; lap: number }> {
    const { timeline } = this.#known
    const { ring } = this.#arena.shape
    let last = -1
    for (const place of timeline.placesOf(record)) {
      const tick = timeline.tickOf(place)
      if (tick === last || tick > newest || tick < newest - timeline.bucketsOf(record)) continue
      last = tick
      const shifted = timeline.shiftedTickOf(place)
      yield { place, tick, slot: shifted % ring, lap: Math.floor(shifted / ring) & 255 }
    }
  }
}
