import { noteEvictedLive } from '../core/channels.js'
import type { Reading } from '../core/reading.js'
import { again } from '../core/tries.js'
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

/** The cells that insertion hands from one key to another. Clocks of threads may differ by a granule. */
export interface Cells {
  /** Whether all counts of a cell with this tick have expired, by the clock of every thread. */
  isExpired(base: number, tick: number, reading: Reading): boolean
  /** Whether `tick` is over by the clock of every thread. Then each thread agrees that nothing counts. */
  isPast(base: number, tick: number, reading: Reading): boolean
  /** Gives a way that was never used its first tick. */
  begin(base: number, reading: Reading): void
  /**
   * The units that count at most, by the admission word `v` and the tick. By the present limit, without one.
   * More than any limit if the word has all bits of `blockMask`.
   */
  mostUsed(v: number, tick: number, reading: Reading, limit?: number): number
  /** Whether nothing counts in the cell, by its words alone. */
  isEmpty(v: number, tick: number): boolean
  /**
   * The payload of `v` that the next key takes over: the counts of the cell, without its block. `isOther`: they
   * are by another record.
   */
  inherited(v: number, isExpired: boolean, isOther: boolean): number
  /** Whether the cell is blocked by its admission word `v`, and the block has not ended. */
  isBlocked(base: number, v: number, nowMs: number): boolean
  /** Milliseconds until the block of a blocked cell ends. */
  blockedMs(base: number, nowMs: number): number
  /** Changes the end that the former key of a claimed cell has left, so that no block of the next has it. */
  leaveBlock(base: number, nowMs: number): void
  /**
   * Brings the tick of a NAMED cell to the reading, and makes it LIVE. Returns false if its admission word is
   * not `named` any more.
   */
  promote(base: number, named: number, reading: Reading): boolean
  /** Counts the epochs that cells get from operations other than decisions. */
  readonly epochs: { count(base: number): void }
  /** Charges the counts of a claimed cell of another record: by this one its cell counts nothing. */
  carryOver(base: number, payload: number, reading: Reading): void
}

/** The cells that count by other records, or did. There are none before the first change of the window. */
export interface OtherCells {
  isOther(base: number): boolean
  hasExpired(base: number): boolean
  hasPast(base: number): boolean
  readonly past: { empty(base: number): void }
  convert(way: number): boolean
}

export interface InsertionOptions {
  readonly onFull: OnFull
  /** The record that new keys count by. */
  readonly record?: number
  /** Whether another record is the present one. */
  readonly isOutdated?: () => boolean
  readonly others?: OtherCells | undefined
}

/**
 * A new key goes to its first set while more ways than this are unused there. After that it goes to the set
 * with more unused ways. At a load of 0.8, 79 % of the keys are in their first set, where a lookup reads one
 * cache line of names. If the emptier set were always taken, 67 % would be. With 8, and with the emptier set,
 * no table ran out of room; with 4, one key in eight million found none (a simulation of 400 tables of 20,000
 * keys and 6 of 1,000,000, 2026-11-21).
 */
const CROWDED = 8

/** The i-th way of a key's two sets; i is 0 to 31. */
function wayOf(i: number, first: number, second: number): number {
  return i < WAYS_PER_SET ? first + i : second + i - WAYS_PER_SET
}

/**
 * Gives a new key a way, in five steps. Two threads that insert the same new key never give it two cells. A
 * thread that dies between two steps harms no other.
 *
 *     claim    CAS(adm -> epoch + 1, CLAIMED, its counts). A decision on the way's old key now fails to
 *              commit. Then this thread writes the name. No other thread may.
 *     name     stores NAMED: the name is complete. No thread decides here yet.
 *     scan     reads every other way of both sets, for the same key. A NAMED way is vetoed by CAS to FREE, so
 *              its thread will fail to promote it. If another way is LIVE, this one is given up. Each thread
 *              names its way before it scans, so of two threads at least one finds the other.
 *     settle   brings the way's tick to a new reading of the clock.
 *     promote  CAS(NAMED -> LIVE). It fails if another thread vetoed.
 *
 * Why settle, and why after the scan: a thread may stall with an old reading of the clock. Meanwhile its key
 * may be admitted at newer readings, expire, lose its way, and get this or another way again. If the way's
 * tick were older than those admissions, the stalled thread would move it to its old reading. It would be
 * admitted in the past, where the key's counts are forgotten, and so over the limit. But after the scan no
 * other cell of the key is alive: it would have been found, or its thread would have vetoed this way. So all
 * admissions of the key are older than the clock is then. From there on a decision counts at that tick or
 * later, however old its reading. That is why one reading at the start is enough for a decision, and why the
 * keys of a batch may share one.
 *
 * The key of an expired way may come back between the choice and the claim: its decision brings the tick on, and
 * has not changed the admission word yet. Such a way is left to its key and another one is chosen. A key that
 * counts is displaced only if the choice found no way without counts.
 *
 * A blocked way is claimed like any other if its block gives way. The claim expects the admission word with
 * which the way was chosen, so it fails if a block is set or changed meanwhile. A total of all ones becomes
 * the largest total that is no block. The first decision then sums the buckets.
 *
 * Insertion is obstruction-free: two threads may veto each other, and try again. A way is lost if a thread
 * dies while it has the way CLAIMED (`stats().lostWays`). A NAMED way is taken by the next thread that needs
 * room. The header's count KEYS is changed just after the CAS that makes a way LIVE or ends that. A thread
 * that dies in between leaves KEYS wrong by one.
 *
 * A cell of another record is converted before its counts are compared with those of others, unless they have
 * expired (`algorithms/conversion.ts`). The scan compares names without their records: a key has one cell by
 * all records together.
 */
export class Insertion {
  readonly #words: Words
  readonly #table: Table
  readonly #cells: Cells
  readonly #reading: Reading
  readonly #onFull: OnFull
  readonly #record: number
  readonly #isOutdated: () => boolean
  readonly #others: OtherCells | undefined
  /** The admission word with which the last way was chosen. The claim expects it. */
  #chosen = 0
  /** Whether the chosen way is blocked, and its block ends early. */
  #endsBlock = false
  /** Whether the chosen way may belong to a key that counts: no other way was to be had. */
  #displaces = false
  /** The admission words of both sets' ways, as `choose` read them. */
  readonly #adms = new Int32Array(2 * WAYS_PER_SET)

  constructor(
    words: Words,
    table: Table,
    cells: Cells,
    reading: Reading,
    { onFull, record = 0, isOutdated = () => false, others }: InsertionOptions,
  ) {
    this.#words = words
    this.#table = table
    this.#cells = cells
    this.#reading = reading
    this.#onFull = onFull
    this.#record = record
    this.#isOutdated = isOutdated
    this.#others = others
  }

  /**
   * Tries once to give the key a way. Returns false if there is no room. After true, the caller looks the key
   * up again: it may be there. `isToBlock`: the caller is about to block the key.
   */
  insert(lo: number, hi: number, isToBlock = false): boolean {
    const way = this.choose(lo, hi, isToBlock)
    if (way < 0) return false
    // The key itself came to live there meanwhile: to displace it would be to forget what it was admitted.
    // The name is read after the admission word: if it changes hands now, the claim fails.
    const v = this.#chosen
    const wasLive = (v & STATE) === LIVE
    if (wasLive && load(this.#words, this.#table.base(way) + ADM) !== v) return true
    if (wasLive && this.#table.isOfKey(way, lo, hi)) return true
    const named = this.#claim(way, lo, hi)
    if (named !== undefined && this.#isOnly(way, named, lo, hi)) {
      const base = this.#table.base(way)
      this.#reading.take() // after the scan: see "Why settle"
      if (this.#cells.promote(base, named, this.#reading)) add(this.#words, HEADER.KEYS, 1)
    }
    return true
  }

  /** The way that a new key would take, or -1. Reads the clock and changes nothing. */
  choose(lo: number, hi: number, isToBlock = false): number {
    this.#endsBlock = false
    this.#displaces = false
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

  /** The number of ways of a set without a name. Plain reads: a late one only makes the sets less even. */
  #unusedIn(set: number): number {
    let unused = 0
    for (let way = set; way < set + WAYS_PER_SET; way++) {
      if (read(this.#words, NAMES_AT + way) === 0) unused++
    }
    return unused
  }

  /** The first way of the set, from `home` on, that was never claimed, or -1. */
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
   * A used way that the key may take, or -1. In this order: FREE or expired, in the set with more of both;
   * NAMED; if more than half of the ways are blocked, the one whose block ends soonest; with
   * `onFull: 'evict'` the one of least total.
   */
  #reusable(first: number, second: number, isToBlock: boolean): number {
    this.#reading.take()
    this.#readWords(first, 0)
    this.#readWords(second, WAYS_PER_SET)
    if (this.#others !== undefined) this.#convertLive(this.#others, first, second)
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
        const tick = read(this.#words, base + TICK) // plain: the claim checks again
        const total = this.#cells.mostUsed(v, tick, this.#reading)
        if (state === FREE || this.#isEmpty(base, v, tick) || this.#isExpired(base, tick)) {
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
    this.#displaces = this.#onFull === 'evict' && (best === least || this.#endsBlock)
    this.#chosen = this.#adms[best]!
    return wayOf(best, first, second)
  }

  /** Converts the cells of other records that still count. */
  #convertLive(others: OtherCells, first: number, second: number): void {
    for (let i = 0; i < 2 * WAYS_PER_SET; i++) {
      const way = wayOf(i, first, second)
      const base = this.#table.base(way)
      if ((this.#adms[i]! & STATE) !== LIVE || !others.isOther(base)) continue
      if (others.hasExpired(base)) continue
      others.convert(way)
      this.#adms[i] = load(this.#words, base + ADM)
    }
  }

  /** Whether all counts of a cell have expired, by its own record. */
  #isExpired(base: number, tick: number): boolean {
    if (this.#others?.isOther(base)) return this.#others.hasExpired(base)
    return this.#cells.isExpired(base, tick, this.#reading) && this.#others?.hasPast(base) !== true
  }

  #isEmpty(base: number, v: number, tick: number): boolean {
    const isEmpty = this.#cells.isEmpty(v, tick) && this.#cells.isPast(base, tick, this.#reading)
    return isEmpty && this.#others?.hasPast(base) !== true
  }

  /**
   * The blocked way whose block ends soonest, or -1. Unless `onFull` is 'evict', a key that still counts
   * keeps its way, so only expired ways are considered.
   */
  #soonestBlock(first: number, second: number): number {
    const { nowMs } = this.#reading
    let soonest = -1
    let soonestMs = Number.POSITIVE_INFINITY
    for (let i = 0; i < 2 * WAYS_PER_SET; i++) {
      const v = this.#adms[i]!
      const base = this.#table.base(wayOf(i, first, second))
      if ((v & STATE) !== LIVE || !this.#cells.isBlocked(base, v, nowMs)) continue
      const tick = read(this.#words, base + TICK) // plain: the claim checks again
      if (this.#onFull !== 'evict' && !this.#isExpired(base, tick)) continue
      const ms = this.#cells.blockedMs(base, nowMs)
      if (soonest >= 0 && ms >= soonestMs) continue
      soonest = i
      soonestMs = ms
    }
    return soonest
  }

  /**
   * Reads a set's admission words and does nothing in between. Each is on a cache line of its own, and the
   * processor fetches them all at once. Plain: the claim compares the word of its way again.
   */
  #readWords(set: number, to: number): void {
    const words = this.#words
    const adms = this.#adms
    for (let i = 0; i < WAYS_PER_SET; i++) adms[to + i] = read(words, this.#table.base(set + i) + ADM)
  }

  /** Claims and names the chosen way. Returns its admission word, or undefined if another thread was faster. */
  #claim(way: number, lo: number, hi: number): number | undefined {
    const words = this.#words
    const base = this.#table.base(way)
    const v = this.#chosen
    const tick = load(words, base + TICK)
    this.#reading.take() // after the tick: what has expired by this tick has expired by any later one
    const isBlocked = this.#cells.isBlocked(base, v, this.#reading.nowMs)
    if (isBlocked && !this.#endsBlock) return undefined // blocked since it was chosen
    const isOther = this.#others?.isOther(base) === true
    const expired = this.#isExpired(base, tick)
    if (isOther && !expired && (v & STATE) === LIVE) return undefined // to be converted first
    const payload = this.#cells.inherited(v, expired, isOther)
    const wasLive = (v & STATE) === LIVE
    const stillCounts = wasLive && !expired && !this.#isEmpty(base, v, tick)
    if (stillCounts && !this.#displaces) return undefined // its key came back meanwhile
    if (this.#isOutdated()) return undefined // after the reading: see `algorithms/conversion.ts`

    add(words, HEADER.CLAIMING, 1)
    const mine = ((v + ONE_EPOCH) & EPOCH) | CLAIMED | payload
    if (compareExchange(words, base + ADM, v, mine) !== v) {
      add(words, HEADER.CLAIMING, -1)
      return undefined
    }
    this.#cells.epochs.count(base)
    if (wasLive) add(words, HEADER.KEYS, -1)
    // After the claim, too: so the record of a way only rises.
    if (this.#isOutdated()) {
      store(words, base + ADM, (mine & ~STATE) | FREE)
      add(words, HEADER.CLAIMING, -1)
      this.#countEvicted(wasLive, stillCounts, isBlocked)
      return undefined
    }
    // Without a name the way was never used: a former key leaves its name, its tick and the buckets of its
    // laps.
    if (read(words, NAMES_AT + way) === 0) this.#cells.begin(base, this.#reading)
    this.#cells.leaveBlock(base, this.#reading.nowMs)
    write(words, base + HI, hi | this.#record) // plain: the store of NAMED publishes both
    write(words, NAMES_AT + way, lo)
    this.#others?.past.empty(base)
    if (isOther) this.#cells.carryOver(base, payload, this.#reading)
    const named = (mine & ~STATE) | NAMED
    store(words, base + ADM, named)
    add(words, HEADER.CLAIMING, -1)
    this.#countEvicted(wasLive, stillCounts, isBlocked)
    return named
  }

  #countEvicted(wasLive: boolean, stillCounts: boolean, isBlocked: boolean): void {
    if (wasLive) count(this.#words, HEADER.EVICTED, 1)
    if (isBlocked) count(this.#words, HEADER.BLOCKS_EVICTED, 1)
    if (!stillCounts) return
    count(this.#words, HEADER.EVICTED_LIVE, 1)
    noteEvictedLive()
  }

  /**
   * Whether the key has no other LIVE way; vetoes its NAMED ways. The names are read plainly, after the
   * addition to CLAIMING, which comes after the store of NAMED. That orders them on every machine.
   */
  #isOnly(way: number, named: number, lo: number, hi: number): boolean {
    const words = this.#words
    const first = this.#table.firstSet(lo)
    const second = this.#table.secondSet(first, hi)
    for (let i = 0; i < 2 * WAYS_PER_SET; i++) {
      const other = wayOf(i, first, second)
      if (other === way || read(words, NAMES_AT + other) !== lo) continue
      const adm = this.#table.base(other) + ADM
      for (let tries = 0; ; tries = again(tries)) {
        const x = load(words, adm)
        const state = x & STATE
        if ((state !== NAMED && state !== LIVE) || !this.#table.isOfKey(other, lo, hi)) break
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
