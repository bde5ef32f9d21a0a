import { again } from '../../core/tries.js'
import { type Shape, TICK } from '../../memory/layout.js'
import { add, compareExchange, load, read, readInOrder, type Words, write } from '../../memory/words.js'
import type { CellTime, Hops } from '../word/cell-time.js'
import {
  ageOf,
  charged,
  cleared,
  counts,
  ENTRIES,
  ENTRY_TICKS,
  HINT,
  MOST_AHEAD,
  PERIOD,
  periodOf,
  REFUNDS,
  SWEEP_TICKS,
} from './log-entry.js'

/** A receipt is `REFUNDS:19 | place:12 | dated a tick later:1`. The place is that of the first entry charged. */
export const PLACE_SHIFT = 1
export const REFUNDS_SHIFT = 13
const PLACE_IN_RECEIPT = 0xfff

/** An entry with a unit in the window. */
export interface Entry {
  readonly at: number
  readonly entry: number
  /** In ticks: see `ageOf`. */
  readonly age: number
}

/**
 * The entries of a log: `sliding-log.ts` has the protocol. An entry is found by its index from the first word
 * of the entries on.
 */
export class LogEntries implements Hops {
  /** The entries of a cell. */
  readonly length: number
  /** The ticks of the window. */
  readonly #window: number
  readonly #words: Words
  readonly #time: CellTime
  /** The places and the words of the last charge, or of the entries that are being taken out. */
  readonly #places: Int32Array
  readonly #written: Int32Array
  #count = 0
  /** The ticks from that of the last sum until a unit leaves. */
  leavesIn = 0

  constructor(words: Words, shape: Shape, length: number, time: CellTime) {
    this.#words = words
    this.#time = time
    this.#window = shape.buckets
    this.length = length
    this.#places = new Int32Array(length)
    this.#written = new Int32Array(length)
  }

  /** Whether a unit of the entry is in the window that ends in tick e. */
  isIn(entry: number, e: number): boolean {
    return counts(entry) && ageOf(entry, e) < this.#window
  }

  /**
   * Charges up to `cost` entries that are free in tick e, with this date. Returns how many, or -1 if the cell's tick
   * has moved on. `undo` takes them out.
   */
  chargeFree(base: number, e: number, cost: number, date: number): number {
    const words = this.#words
    const from = read(words, base + HINT) // plain: it only says where to begin
    let place = from >>> 0 < this.length ? from : 0
    this.#count = 0
    for (let looked = 0; looked < this.length && this.#count < cost; looked++) {
      const at = base + ENTRIES + place
      for (let tries = 0; ; tries = again(tries)) {
        const entry = readInOrder(words, at)
        if (this.isIn(entry, e)) break
        if (this.#isLate(base, e)) return -1
        const next = charged(entry, date)
        if (compareExchange(words, at, entry, next) !== entry) continue
        this.#keep(at, next)
        break
      }
      place = place + 1 < this.length ? place + 1 : 0
    }
    if (this.#count > 0) write(words, base + HINT, place)
    return this.#count
  }

  /**
   * Whether an entry, read before, may be newer than tick e although it seems to be out: if so, the cell's tick has
   * moved on. (The date of an entry may be one tick after the cell's.)
   */
  #isLate(base: number, e: number): boolean {
    return this.#time.distance(read(this.#words, base + TICK), e) >= MOST_AHEAD
  }

  #keep(at: number, entry: number): void {
    this.#places[this.#count] = at
    this.#written[this.#count++] = entry
  }

  /** Takes the last charge out, except for what a refund by key has taken. Returns the number of units. */
  undo(): number {
    let taken = 0
    for (let i = 0; i < this.#count; i++) if (this.clear(this.#places[i]!, this.#written[i]!)) taken++
    this.#count = 0
    return taken
  }

  /** The units in the window that ends in tick e. Sets `leavesIn`. */
  sum(base: number, e: number): number {
    const words = this.#words
    const end = base + ENTRIES + this.length
    let units = 0
    let oldest = 0 // a unit that is charged after the sum leaves after this, too
    for (let at = base + ENTRIES; at < end; at++) {
      const entry = read(words, at)
      if (!counts(entry)) continue
      const age = ageOf(entry, e)
      if (age >= this.#window) continue
      units++
      if (age > oldest) oldest = age
    }
    this.leavesIn = this.#window - oldest
    return units
  }

  /** The ages in tick e of the units that are younger than `length` ticks. By plain reads. */
  ages(base: number, e: number, length: number): number[] {
    const found: number[] = []
    for (let at = base + ENTRIES; at < base + ENTRIES + this.length; at++) {
      const entry = read(this.#words, at)
      if (!counts(entry)) continue
      const age = ageOf(entry, e)
      if (age < length) found.push(age)
    }
    return found
  }

  /** The oldest `most` entries in the window that ends in tick e, the oldest first. */
  oldest(base: number, e: number, most: number): Entry[] {
    const found: Entry[] = []
    for (let at = base + ENTRIES; at < base + ENTRIES + this.length; at++) {
      const entry = readInOrder(this.#words, at)
      if (!this.isIn(entry, e)) continue
      const age = ageOf(entry, e)
      if (most > 1 || found.length === 0) found.push({ at, entry, age })
      else if (age > found[0]!.age) found[0] = { at, entry, age }
    }
    return found.sort((a, b) => b.age - a.age).slice(0, most)
  }

  /** Replaces the unit of an entry by one of another date. Returns false if it has changed. */
  redate(at: number, entry: number, date: number): boolean {
    return compareExchange(this.#words, at, entry, charged(entry, date)) === entry
  }

  /** Takes the unit of an entry out. Returns false if it has changed. */
  clear(at: number, entry: number): boolean {
    return compareExchange(this.#words, at, entry, cleared(entry)) === entry
  }

  /** The refunds by key so far, before a charge. In order: a later refund may take the charge. */
  refunds(base: number): number {
    return readInOrder(this.#words, base + REFUNDS)
  }

  /** The receipt of the last charge, which had read REFUNDS before it. */
  receipt(base: number, refunds: number, isLater: boolean): number {
    const place = this.#places[0]! - base - ENTRIES
    return (refunds << REFUNDS_SHIFT) | (place << PLACE_SHIFT) | (isLater ? 1 : 0)
  }

  /** Counts a refund by key, after it has found its entries, and before it takes them. */
  countRefund(base: number): void {
    add(this.#words, base + REFUNDS, 1)
  }

  /**
   * Takes out `cost` units with this date, in the window that ends in tick e, from the first entry of the charge on.
   * Returns how many: none if there was a refund by key since.
   */
  giveBack(base: number, e: number, cost: number, date: number, receipt: number): number {
    const age = ageOf(charged(0, date), e)
    let place = ((receipt >>> PLACE_SHIFT) & PLACE_IN_RECEIPT) % this.length
    this.#count = 0
    for (let looked = 0; looked < this.length && this.#count < cost; looked++) {
      const at = base + ENTRIES + place
      const entry = load(this.#words, at)
      if (this.isIn(entry, e) && ageOf(entry, e) === age) this.#keep(at, entry)
      place = place + 1 < this.length ? place + 1 : 0
    }
    // After the entries: see "Giving back" in `sliding-log.ts`.
    const isSame = (load(this.#words, base + REFUNDS) ^ (receipt >>> REFUNDS_SHIFT)) << REFUNDS_SHIFT === 0
    return this.#count === cost && isSame ? this.undo() : 0
  }

  /**
   * Before a cell's tick moves from `tick` to this reading. If it has rested for a whole period, its tick could
   * have come round to its old units. They are all out, as no such window is that long. They are cleared while the
   * tick and PERIOD stay: what another thread has charged since has moved both.
   */
  beginPeriod(base: number, tick: number, nowMs: number): void {
    const words = this.#words
    const period = periodOf(nowMs)
    const before = read(words, base + PERIOD)
    if (before === period) return
    for (let at = base + ENTRIES; period - before > 1 && at < base + ENTRIES + this.length; at++) {
      const entry = load(words, at)
      if (load(words, base + TICK) !== tick || load(words, base + PERIOD) !== before) return
      if (counts(entry)) this.clear(at, entry)
    }
    if (period > before) compareExchange(words, base + PERIOD, before, period)
  }

  /** First a short hop: after it, no entry seems to be ahead. Then hops that add up to more than any window. */
  hop(behind: number): number {
    if (behind <= SWEEP_TICKS) return behind
    const laps = Math.floor((behind - SWEEP_TICKS - ENTRY_TICKS / 2) / ENTRY_TICKS)
    return SWEEP_TICKS + ENTRY_TICKS * Math.max(0, laps)
  }

  /** Clears what is out, before its age becomes that of another lap. */
  sweep(base: number, from: number, hop: number, to: number): void {
    const quarter = (tick: number) => Math.floor((tick >>> 0) / SWEEP_TICKS)
    if (hop < SWEEP_TICKS && quarter(from) === quarter(to)) return
    for (let at = base + ENTRIES; at < base + ENTRIES + this.length; at++) {
      const entry = load(this.#words, at)
      if (!counts(entry) || this.isIn(entry, to)) continue
      if (this.#isLate(base, to)) return
      this.clear(at, entry)
    }
  }
}
