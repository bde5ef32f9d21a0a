import { BUCKETS, COUNT, LAP, LAP_SHIFT, ONE_LAP, REFUNDS, TICK } from '../memory/layout.js'
import { compareExchange, load, read, type Words } from '../memory/words.js'
import { CHARGED, type Laps, type RangeSum, SWEEP_LAPS } from './range-sum.js'

/** Sums a window of few buckets one by one, without nodes. */
export class Linear implements RangeSum {
  readonly #words: Words
  readonly #ring: number
  readonly #laps: Laps

  constructor(words: Words, ring: number, laps: Laps) {
    this.#words = words
    this.#ring = ring
    this.#laps = laps
  }

  charge(): number {
    return CHARGED
  }

  takeOut(): void {}

  roomAbove(): number {
    return COUNT
  }

  /**
   * Plain reads: the caller has loaded the admission word, and all that it counts was in the buckets before.
   */
  sum(base: number, slot: number, lap: number, length: number): number {
    const first = base + BUCKETS
    const end = first + slot + 1
    const from = end - length
    const ringEnd = first + this.#ring
    // Of the lap before, from its end on if there is nothing: one way, which V8 optimizes once.
    const before = this.#sumOf(from + this.#ring, ringEnd, (lap - ONE_LAP) & LAP)
    return before + this.#sumOf(Math.max(from, first), end, lap)
  }

  /**
   * The units of this lap in the words `from` to before `end`. Without a branch: the processor can't predict
   * which buckets count.
   */
  #sumOf(from: number, end: number, lap: number): number {
    const words = this.#words
    let sum = 0
    for (let i = from; i < end; i++) {
      const x = read(words, i) ^ lap // without LAP if the bucket is of this lap
      sum = (sum + (x & COUNT & (((x >>> LAP_SHIFT) - 1) >> 31))) | 0
    }
    return sum
  }

  find(base: number, slot: number, lap: number, length: number, units: number): number {
    let left = units
    for (let age = length - 1; age >= 0; age--) {
      const at = slot - age
      const b = read(this.#words, base + BUCKETS + (at < 0 ? at + this.#ring : at))
      if ((b & LAP) !== (at < 0 ? (lap - ONE_LAP) & LAP : lap)) continue
      left -= b & COUNT
      if (left < 0) return age
    }
    return -1
  }

  /** Sweeps one slot for every 64 ticks passed: clears its count if its lap is not in the ring any more. */
  sweep(base: number, from: number, hop: number, to: number): void {
    const end = Math.floor(((from >>> 0) + hop) / SWEEP_LAPS)
    let p = Math.floor((from >>> 0) / SWEEP_LAPS) + 1
    if (p > end) return
    p = Math.max(p, end - this.#ring + 1)
    for (; p <= end; p++) {
      const i = p % this.#ring
      const at = base + BUCKETS + i
      const b = load(this.#words, at)
      if ((b & COUNT) === 0 || (b & LAP) === this.#laps.lapOf(i, to)) continue
      // Other threads may have moved the tick on. The count was charged in the tick read here, or before.
      if ((b & LAP) === this.#laps.lapOf(i, read(this.#words, base + TICK))) continue
      compareExchange(this.#words, at, b, (b & LAP) | REFUNDS)
    }
  }
}
