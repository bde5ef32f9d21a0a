import type { Reading } from '../core/reading.js'
import { count } from './counters.js'
import {
  ADM,
  CLAIMED,
  COUNT,
  EPOCH,
  FREE,
  HEADER,
  HI,
  LIVE,
  MAX_TOTAL,
  MOST_BLOCKED,
  NAMED,
  NAMES_AT,
  ONE_EPOCH,
  type OnFull,
  STATE,
  TICK,
  WAYS_PER_SET,
} from './layout.js'
import type { Table } from './table.js'
import { add, compareExchange, load, read, store, type Words, write } from './words.js'

/** What insertion must know of the cells that it hands from key to key. */
export interface Cells {
  /** Whether all that the cell, whose tick is `tick`, has counted has left the window of every thread. */
  isExpired(base: number, tick: number, reading: Reading): boolean
  /** Whether the cell's `tick` is past for every thread: what a total of 0 does not count, none of them does. */
  isPast(base: number, tick: number, reading: Reading): boolean
  /** Whether `v`, the cell's admission word, is blocked and its block not over. */
  isBlocked(base: number, v: number, nowMs: number): boolean
  /** How long a cell that `isBlocked` stays so. */
  blockedMs(base: number, nowMs: number): number
  /** Brings a cell's tick up to the reading. */
  enter(base: number, reading: Reading): void
  /** Gives a way that nobody ever used its first tick. */
  begin(base: number, reading: Reading): void
  /** Counts the epochs that cells are given otherwise than by a decision. */
  readonly epochs: { count(base: number): void }
}

/**
 * The first set is taken while more ways than this are unused there, then the emptier one. Always taking the emptier one
 * leaves 67 % of the keys of a table at 80 % in their first set, this 79 %, which a lookup finds with one line of names;
 * neither ran out of room, where with 4 it happened once in eight million keys (a simulation of 400 tables of 20,000 keys
 * and 6 of 1,000,000, 2026-11-21).
 */
const CROWDED = 8

/** The ways of a key's two sets, 0 to 31. */
function wayOf(i: number, first: number, second: number): number {
  return i < WAYS_PER_SET ? first + i : second + i - WAYS_PER_SET
}

/**
 * Gives a new key a way. It becomes the key's in five steps, so that two threads that meet one new key never make two
 * cells of it, and a thread that dies in between harms nobody:
 *
 *     claim    CAS(adm -> epoch + 1, CLAIMED, its counts): whoever was deciding on the way's old key now fails to
 *              commit. Then its name is written: nobody else may.
 *     NAMED    the name stands. Still nobody decides here.
 *     scan     every other way of both sets, for the same key. A NAMED one is vetoed (CAS to FREE: its thread will
 *              fail to promote it); for a LIVE one this way is given up. Of two threads, each has named before it
 *              scans, so at least one sees the other.
 *     settle   the way's tick comes up to a clock read now.
 *     promote  CAS(NAMED -> LIVE): fails where another vetoed.
 *
 * Why settle, and why after the scan: a thread may stall with a reading of the clock in hand, while its key is admitted
 * with newer ones, expires, loses its way and wins it (or another) back. Were the way's tick older than those
 * admissions, the stalled thread would move it to its own old reading and be admitted in the past, where its key's
 * counts are forgotten: over the limit. But no other cell of the key was alive after the scan, or it would have been
 * seen, or have vetoed this one; so all that the key was ever admitted is older than the clock then. From there on a
 * decision counts at that tick or later, whatever it has read. This is why one reading a decision is enough, taken
 * first, and why a batch may share one.
 *
 * A blocked way is claimed like any other, where its block gives way: by the admission word that was seen, so a block
 * that is set or changed meanwhile makes the claim fail. Its total, all ones, becomes the most that is no block, and the first
 * decision sums it.
 *
 * Obstruction-free: two threads may veto each other and try again. A thread that dies while a way is CLAIMED loses it
 * (`stats().lostWays`); one that is NAMED is taken by the next that looks for room. KEYS is added to just behind the
 * compare-exchange that makes a way LIVE or ends that: a thread that dies between the two leaves it wrong by one.
 */
export class Insertion {
  readonly #words: Words
  readonly #table: Table
  readonly #cells: Cells
  readonly #reading: Reading
  readonly #onFull: OnFull
  /** The admission word of the way last chosen, as it was then: whoever claims it claims it so, or not at all. */
  #chosen = 0
  /** Whether it was chosen although it is blocked. */
  #endsBlock = false
  /** The admission words of the ways of both sets. */
  readonly #adms = new Int32Array(2 * WAYS_PER_SET)

  constructor(words: Words, table: Table, cells: Cells, reading: Reading, onFull: OnFull) {
    this.#words = words
    this.#table = table
    this.#cells = cells
    this.#reading = reading
    this.#onFull = onFull
  }

  /**
   * Tries to give the key a way, which it may be about to block. False: there is no room; else look it up again, it may be
   * there.
   */
  insert(lo: number, hi: number, isToBlock = false): boolean {
    const way = this.choose(lo, hi, isToBlock)
    if (way < 0) return false
    // The key itself came to live there meanwhile: to displace it would be to forget what it was admitted. The name is read
    // after the admission word: if it changes hands now, the claim fails.
    const v = this.#chosen
    const wasLive = (v & STATE) === LIVE
    if (wasLive && load(this.#words, this.#table.base(way) + ADM) !== v) return true
    if (wasLive && this.#table.isNamed(way, lo, hi)) return true
    const named = this.#claim(way, lo, hi)
    if (named !== undefined && this.#isOnly(way, named, lo, hi)) {
      const base = this.#table.base(way)
      this.#reading.take() // after the scan: see "settle"
      this.#cells.enter(base, this.#reading)
      const isLive = compareExchange(this.#words, base + ADM, named, (named & ~STATE) | LIVE) === named
      if (isLive) add(this.#words, HEADER.KEYS, 1)
    }
    return true
  }

  /** The way that a new key would take, or -1: changes nothing. Reads the clock. */
  choose(lo: number, hi: number, isToBlock = false): number {
    this.#endsBlock = false
    const first = this.#table.firstSet(lo)
    const second = this.#table.secondSet(first, hi)
    const home = lo & (WAYS_PER_SET - 1)
    const unused = this.#unusedIn(first)
    const [best, next] =
      unused > CROWDED || unused >= this.#unusedIn(second) ? [first, second] : [second, first]
    let way = this.#unused(best, home)
    if (way < 0) way = this.#unused(next, home)
    return way >= 0 ? way : this.#reusable(first, second, isToBlock)
  }

  /** How many ways of a set bear no name yet. Plain reads: too high or too low only fills the sets less evenly. */
  #unusedIn(set: number): number {
    let unused = 0
    for (let way = set; way < set + WAYS_PER_SET; way++) {
      if (read(this.#words, NAMES_AT + way) === 0) unused++
    }
    return unused
  }

  /** A way of the set that nobody ever claimed, from `home` on, or -1. */
  #unused(set: number, home: number): number {
    for (let i = 0; i < WAYS_PER_SET; i++) {
      const way = set + ((home + i) & (WAYS_PER_SET - 1))
      const nameless = read(this.#words, NAMES_AT + way) === 0
      if (!nameless || load(this.#words, this.#table.base(way) + ADM) !== 0) continue
      this.#chosen = 0
      return way
    }
    return -1
  }

  /**
   * In this order: FREE; all expired (of the set with more of both); NAMED; where too many are blocked, the one whose block
   * ends soonest; by `onFull` the one of least total.
   */
  #reusable(first: number, second: number, isToBlock: boolean): number {
    this.#reading.take()
    this.#readWords(first, 0)
    this.#readWords(second, WAYS_PER_SET)
    let named = -1
    let least = -1
    let leastTotal = COUNT
    let blocked = isToBlock ? 1 : 0
    let best = -1
    let most = 0
    for (let set = 0; set < 2; set++) {
      let empty = -1
      let empties = 0
      for (let i = set * WAYS_PER_SET; i < (set + 1) * WAYS_PER_SET; i++) {
        const v = this.#adms[i]!
        const state = v & STATE
        if (state === NAMED) named = i
        if (state === CLAIMED || state === NAMED) continue
        const base = this.#table.base(wayOf(i, first, second))
        if (this.#cells.isBlocked(base, v, this.#reading.nowMs)) {
          blocked++
          continue
        }
        const total = v & COUNT
        const tick = read(this.#words, base + TICK) // late: a way is thought expired; the claim looks again
        const isEmpty = total === 0 && this.#cells.isPast(base, tick, this.#reading)
        if (state === FREE || isEmpty || this.#cells.isExpired(base, tick, this.#reading)) {
          empties++
          if (empty < 0 || state === FREE) empty = i
        } else if (total < leastTotal || least < 0) {
          least = i
          leastTotal = total
        }
      }
      if (empties > most) {
        best = empty
        most = empties
      }
    }
    if (best < 0) best = named
    if (best < 0 && blocked > MOST_BLOCKED) {
      best = this.#soonestBlock(first, second)
      this.#endsBlock = best >= 0
    }
    if (best < 0 && this.#onFull === 'evict') best = least
    if (best < 0) return -1
    this.#chosen = this.#adms[best]!
    return wayOf(best, first, second)
  }

  /**
   * Of the blocked ways just seen, the one whose block ends soonest; where a key that counts keeps its way, of those that
   * have expired; or -1.
   */
  #soonestBlock(first: number, second: number): number {
    const { nowMs } = this.#reading
    let soonest = -1
    let soonestMs = Number.POSITIVE_INFINITY
    for (let i = 0; i < 2 * WAYS_PER_SET; i++) {
      const v = this.#adms[i]!
      const base = this.#table.base(wayOf(i, first, second))
      if ((v & STATE) !== LIVE || !this.#cells.isBlocked(base, v, nowMs)) continue
      const tick = read(this.#words, base + TICK) // the claim looks again
      if (this.#onFull !== 'evict' && !this.#cells.isExpired(base, tick, this.#reading)) continue
      const ms = this.#cells.blockedMs(base, nowMs)
      if (soonest >= 0 && ms >= soonestMs) continue
      soonest = i
      soonestMs = ms
    }
    return soonest
  }

  /**
   * Reads a set's admission words and does nothing else meanwhile: each is on a cache line of its own, and so the processor
   * fetches them all at once. Plain: whoever takes a way looks at its word again.
   */
  #readWords(set: number, to: number): void {
    const words = this.#words
    const adms = this.#adms
    for (let i = 0; i < WAYS_PER_SET; i++) adms[to + i] = read(words, this.#table.base(set + i) + ADM)
  }

  /** The way's admission word, NAMED; or undefined where another thread was faster. */
  #claim(way: number, lo: number, hi: number): number | undefined {
    const words = this.#words
    const base = this.#table.base(way)
    const v = this.#chosen
    const tick = load(words, base + TICK) // then the clock: what has expired by this tick has by any later one
    this.#reading.take()
    const isBlocked = this.#cells.isBlocked(base, v, this.#reading.nowMs)
    if (isBlocked && !this.#endsBlock) return undefined // since it was chosen
    const expired = this.#cells.isExpired(base, tick, this.#reading)
    const total = expired ? 0 : Math.min(v & COUNT, MAX_TOTAL)
    const wasLive = (v & STATE) === LIVE
    const stillCounts = wasLive && (total > 0 || !this.#cells.isPast(base, tick, this.#reading))
    if (stillCounts && this.#onFull !== 'evict') return undefined // its key came back in between

    add(words, HEADER.CLAIMING, 1)
    const mine = ((v + ONE_EPOCH) & EPOCH) | CLAIMED | total
    if (compareExchange(words, base + ADM, v, mine) !== v) {
      add(words, HEADER.CLAIMING, -1)
      return undefined
    }
    this.#cells.epochs.count(base)
    if (wasLive) add(words, HEADER.KEYS, -1)
    // Nameless: nobody was here before, for whoever was has left a name with the tick and the buckets of its laps.
    if (read(words, NAMES_AT + way) === 0) this.#cells.begin(base, this.#reading)
    write(words, base + HI, hi) // plain: the store of NAMED releases them
    write(words, NAMES_AT + way, lo)
    const named = (mine & ~STATE) | NAMED
    store(words, base + ADM, named)
    add(words, HEADER.CLAIMING, -1)
    if (wasLive) count(words, HEADER.EVICTED, 1)
    if (stillCounts) count(words, HEADER.EVICTED_LIVE, 1)
    if (isBlocked) count(words, HEADER.BLOCKS_EVICTED, 1)
    return named
  }

  /**
   * Whether no other way of both sets is the key's; vetoes those on their way there. The add to CLAIMING stands
   * between the store of NAMED and these plain reads of names, and orders them on every machine.
   */
  #isOnly(way: number, named: number, lo: number, hi: number): boolean {
    const words = this.#words
    const first = this.#table.firstSet(lo)
    const second = this.#table.secondSet(first, hi)
    for (let i = 0; i < 2 * WAYS_PER_SET; i++) {
      const other = wayOf(i, first, second)
      if (other === way || read(words, NAMES_AT + other) !== lo) continue
      const adm = this.#table.base(other) + ADM
      for (;;) {
        const x = load(words, adm)
        const state = x & STATE
        if ((state !== NAMED && state !== LIVE) || !this.#table.isNamed(other, lo, hi)) break
        if (state === LIVE) {
          compareExchange(words, this.#table.base(way) + ADM, named, (named & ~STATE) | FREE)
          return false
        }
        if (compareExchange(words, adm, x, (x & ~STATE) | FREE) === x) break
      }
    }
    return true
  }
}
