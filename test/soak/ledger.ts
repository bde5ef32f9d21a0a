import type { LimiterStats } from 'millrace'
import { SlidingWindow } from '#millrace/algorithms/window/sliding-window.js'
import {
  ADM,
  BLOCKED,
  BUCKETS,
  CLAIMED,
  COUNT,
  FREE,
  HI,
  LIVE,
  NAMES_AT,
  refundsOf,
  STATE,
  TICK,
} from '#millrace/memory/layout.js'
import type { Arena } from '#millrace/memory/records.js'
import { load, read } from '#millrace/memory/words.js'
import type { Counts } from './load.js'

/** Each rest sums the buckets of one cell in this many, because summing all would take most of the run. */
const SUMMED_ONE_IN = 16

/** The contents of a table at rest. */
interface Census {
  live: number
  free: number
  /** Ways that are CLAIMED or NAMED: between two keys. */
  between: number
  /** Keys with two ways. */
  double: number
  /** Cells whose total is below the sum of their buckets. */
  short: number
}

/** Compares the threads' own counts with shared memory, while all threads rest. */
export class Ledger {
  readonly #arena: Arena
  readonly #window: SlidingWindow
  readonly #names: BigUint64Array
  readonly #halves: Int32Array
  #rests = 0

  constructor(arena: Arena) {
    const { words, shape, edge, originMs } = arena
    this.#arena = arena
    this.#window = new SlidingWindow(words, shape, edge, originMs)
    this.#names = new BigUint64Array(shape.ways)
    this.#halves = new Int32Array(this.#names.buffer)
  }

  /** Descriptions of all mismatches. `threads` must have flushed their statistics. */
  differences(threads: readonly Counts[], stats: () => LimiterStats): string[] {
    const before = this.#census()
    const { allowed, denied, keys, evicted, evictedLive, noRoom, lostWays } = stats()
    const sum = (of: (counts: Counts) => number) => threads.reduce((total, counts) => total + of(counts), 0)
    const inserted = before.live + evicted
    const made = sum((counts) => counts.made)
    return [
      equal(
        'admitted',
        allowed,
        sum((counts) => counts.admitted),
      ),
      equal(
        'refused',
        denied,
        sum((counts) => counts.refused),
      ),
      within('inserted (live + evicted)', inserted, made, made + sum((counts) => counts.unclear)),
      equal('keys', keys, before.live),
      equal('ways between two keys', before.between, 0),
      equal('lostWays', lostWays, 0),
      equal('keys with two ways', before.double, 0),
      equal('totals below their buckets', before.short, 0),
      equal('evictedLive (the table has room for all)', evictedLive, 0),
      equal('noRoom', noRoom, 0),
    ].filter((difference) => difference !== undefined)
  }

  /** Reads every way once. */
  #census(): Census {
    const { words, shape } = this.#arena
    const census = { live: 0, free: 0, between: 0, double: 0, short: 0 }
    for (let way = 0; way < shape.ways; way++) {
      const base = this.#window.base(way)
      const v = load(words, base + ADM)
      const state = v & STATE
      if (state === LIVE) {
        this.#halves[2 * census.live] = read(words, NAMES_AT + way)
        this.#halves[2 * census.live + 1] = read(words, base + HI)
        census.live++
        if ((way + this.#rests) % SUMMED_ONE_IN === 0 && this.#isShort(base, v)) census.short++
      } else if (state === FREE) census.free++
      else if (state >= CLAIMED) census.between++
    }
    census.double = this.#doubles(census.live)
    this.#rests++
    return census
  }

  #doubles(live: number): number {
    this.#names.subarray(0, live).sort()
    const halves = this.#halves
    let doubles = 0
    for (let i = 2; i < 2 * live; i += 2) {
      if (halves[i] === halves[i - 2] && halves[i + 1] === halves[i - 1]) doubles++
    }
    return doubles
  }

  /** After a refund by key, a bucket may keep the charge of an overlapping decision. */
  #isShort(base: number, v: number): boolean {
    if ((v & COUNT) === BLOCKED) return false
    const { words, shape } = this.#arena
    for (let i = 0; i < shape.ring; i++) if (refundsOf(read(words, base + BUCKETS + i)) > 0) return false
    return (v & COUNT) < this.#window.ring.sum(base, read(words, base + TICK), 0)
  }
}

function equal(what: string, found: number, expected: number): string | undefined {
  return found === expected ? undefined : `${what}: ${found}, expected ${expected}`
}

function within(what: string, found: number, least: number, most: number): string | undefined {
  return found >= least && found <= most ? undefined : `${what}: ${found}, expected ${least} to ${most}`
}
