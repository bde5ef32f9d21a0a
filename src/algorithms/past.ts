import type { Reading } from '../core/reading.js'
import { again } from '../core/tries.js'
import { BlockTime } from '../memory/block-time.js'
import {
  CARRIED,
  CARRIED_TICK,
  CELL_RECORD,
  COUNT,
  HI,
  LIVE,
  MAX_TOTAL,
  PAST,
  PAST_UNTIL,
  PAST_WORDS,
  type Shape,
} from '../memory/layout.js'
import { compareExchange, load, read, store, type Words, write } from '../memory/words.js'
import type { Algorithm } from './algorithm.js'

/** How a cell is counted: as in `conversion.ts`. */
export interface PastView {
  readonly algorithm: Algorithm
  readonly reading: Reading
}

/** What a cell has to remember when its window becomes shorter. */
export interface Remembered {
  /** The units of all windows so far, each once. 0: nothing. */
  readonly units: number
  /** When the last of them leaves its window, in milliseconds. */
  readonly untilMs: number
}

const RECORD_SHIFT = 22
const RECORD_BITS = CELL_RECORD << RECORD_SHIFT
const VERSION = 0xf0000000 | 0
const ONE_VERSION = 1 << 28

/**
 * What the windows before the present one still count of a key. A conversion brings only those units to a shorter
 * window that it covers. The others count no more there, but a later, longer window has to count them. So a way has a
 * *past*: all units that counted at a conversion, and the time until which any of them counts in the window that
 * admitted it. A cell with a past has not expired, so no other key takes its way for the time being.
 *
 * **Each unit once.** The units of the past that a shorter window covers count in the cell, too. CARRIED says how many
 * the cell has carried, and CARRIED_TICK where. A longer window counts the past, and what the cell counts without
 * what it has carried, as far as that still counts in the cell.
 *
 * **One thread remembers.** Threads that convert at once see the same past. PAST names the record of the last
 * conversion, and is replaced by a compare-exchange after the fence and before the conversion is finished. So the
 * first thread that gets there adds the units of the cell, and a thread that dies forgets nothing. A thread that
 * converts to an earlier record may get there first, and forget what its own carry counts. But its carry stays only
 * if it finishes. So a thread that still has the name replaces that past by its own. PAST_UNTIL is raised before: in
 * between, the old units count until the later time. It is never set to an earlier one, because a thread that stalls
 * before may come when a later conversion has remembered. The version of PAST says that the way has not changed hands
 * since: the next key's thread empties it while it has the way CLAIMED.
 *
 * **A thread that has not counted** reads the past before its fence, and carries it on top of the total. If another
 * one forgets the past after that reading, some units count twice; if before, they are in the total of the fence, as
 * they have been carried before they were forgotten.
 *
 * **The thread that finishes says what it has carried**, because only its carry stays. Until it has, CARRIED has
 * another record than the cell, and nothing is subtracted. A thread that says it late writes a tick, or a record, of
 * before: then nothing is subtracted either. All of this errs to refusal.
 */
export class Past {
  readonly #words: Words
  readonly #shape: Shape
  readonly #time: BlockTime

  constructor(words: Words, shape: Shape, originMs: number) {
    this.#words = words
    this.#shape = shape
    this.#time = new BlockTime(originMs)
  }

  /** PAST of a cell. */
  word(base: number): number {
    return load(this.#words, this.#at(base) + PAST)
  }

  /** The units that longer windows still count, or counted until `fromMs`. */
  units(base: number, nowMs: number, fromMs = nowMs): number {
    const units = this.word(base) & COUNT
    return units > 0 && this.#leftMs(base, nowMs) > fromMs - nowMs ? units : 0
  }

  /**
   * What a cell counted in the last `lastMs`. With `fromMs`, that is more than its own window: then what longer ones
   * before it counted after that moment counts, too.
   */
  used(
    base: number,
    { algorithm, reading }: PastView,
    lastMs: number,
    fromMs: number | undefined,
    nowMs: number,
  ): number {
    const used = algorithm.estimates.usedInLast(base, reading, lastMs)
    const past = fromMs === undefined ? 0 : this.units(base, nowMs, fromMs)
    return past === 0 ? used : past + Math.max(0, used - this.#carriedIn(base, algorithm, reading))
  }

  /** What it has carried and still counts. */
  #carriedIn(base: number, algorithm: Algorithm, reading: Reading): number {
    const at = this.#at(base)
    const word = load(this.#words, at + CARRIED)
    if (recordIn(word) !== (load(this.#words, base + HI) & CELL_RECORD)) return 0
    const tick = load(this.#words, at + CARRIED_TICK)
    const v = LIVE | (word & COUNT)
    return algorithm.estimates.untilGone(tick, reading, v) > 0 ? algorithm.mostUsed(v, tick, reading) : 0
  }

  /** How long the past counts, from `nowMs` on. */
  leftMs(base: number, nowMs: number): number {
    return this.units(base, nowMs) === 0 ? 0 : this.#leftMs(base, nowMs)
  }

  /**
   * Remembers units for the conversion of `name`, unless another thread has, for that record or a later one. `word`:
   * PAST before the conversion.
   */
  remember(base: number, name: number, word: number, { units, untilMs }: Remembered, nowMs: number): void {
    if ((word & COUNT) === 0 && units === 0) return // the memory of most ways is never used
    const at = this.#at(base)
    const record = name & CELL_RECORD
    const leftMs = untilMs - nowMs
    let past = word
    for (let tries = 0; recordIn(past) < record; tries = again(tries)) {
      const until = load(this.#words, at + PAST_UNTIL)
      const isLater = units > 0 && this.#time.leftMs(until, nowMs) < leftMs
      const next = isLater ? this.#time.wordFor(nowMs, leftMs) : until
      if (load(this.#words, base + HI) !== name) return
      if (compareExchange(this.#words, at + PAST_UNTIL, until, next) !== until) continue
      if (this.#replace(at, past, (record << RECORD_SHIFT) | Math.min(units, MAX_TOTAL))) return
      past = load(this.#words, at + PAST)
    }
  }

  /** Says what the finished conversion has carried. */
  carried(base: number, record: number, payload: number, tick: number): void {
    const at = this.#at(base)
    if ((load(this.#words, at + PAST) & COUNT) === 0) return
    store(this.#words, at + CARRIED_TICK, tick)
    store(this.#words, at + CARRIED, (record << RECORD_SHIFT) | Math.min(payload, MAX_TOTAL))
  }

  /** Forgets the past that `word` names. */
  clear(base: number, word: number): void {
    if ((word & COUNT) > 0) this.#replace(this.#at(base), word, 0)
  }

  /** Forgets the past of a way that this thread has CLAIMED. */
  empty(base: number): void {
    const at = this.#at(base) + PAST
    const word = read(this.#words, at)
    if ((word & COUNT) > 0) write(this.#words, at, (word + ONE_VERSION) & VERSION)
  }

  #replace(at: number, word: number, next: number): boolean {
    return compareExchange(this.#words, at + PAST, word, ((word + ONE_VERSION) & VERSION) | next) === word
  }

  #leftMs(base: number, nowMs: number): number {
    return this.#time.leftMs(load(this.#words, this.#at(base) + PAST_UNTIL), nowMs)
  }

  #at(base: number): number {
    const { waysAt, wayWords, pastAt } = this.#shape
    return pastAt + ((base - waysAt) / wayWords) * PAST_WORDS
  }
}

const recordIn = (word: number): number => (word & RECORD_BITS) >>> RECORD_SHIFT
