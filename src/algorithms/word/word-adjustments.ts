import type { Reading } from '../../core/reading.js'
import { again } from '../../core/tries.js'
import { ADM, AS_OF, LIVE, STATE, TICK } from '../../memory/layout.js'
import { compareExchange, load, read } from '../../memory/words.js'
import { type CellAdjustments, type Charge, GONE } from '../algorithm.js'
import { Blocking } from '../blocking.js'
import { isSettled, SHUT, tickOf, UNKNOWN_UNITS } from './meter.js'
import { RecentRefunds } from './recent-refunds.js'
import type { WordCells } from './word-cells.js'

/** Changes the meter of a cell in other ways than by admission (`word-cells.ts`). */
export class WordAdjustments implements CellAdjustments {
  readonly #cells: WordCells
  readonly #blocking: Blocking
  readonly #refunds: RecentRefunds

  constructor(cells: WordCells) {
    this.#cells = cells
    this.#blocking = new Blocking(cells)
    this.#refunds = new RecentRefunds(cells)
  }

  giveBack(way: number, charge: Charge, cost: number, reading: Reading): boolean {
    const { words } = this.#cells
    const { tick: w0, receipt, limit, at } = charge
    const base = this.#cells.base(way)
    for (let tries = 0; ; tries = again(tries)) {
      const v = load(words, base + ADM)
      if ((v & STATE) !== LIVE) return false
      const noted = load(words, base + AS_OF)
      const w = read(words, base + TICK) // after AS_OF: see `recent-refunds.ts`
      const fresh = this.#cells.freshReading(reading) // after v: see "Giving back" in `token-bucket.ts`
      if (this.#cells.isAllOver(base, w, fresh)) return false
      const refunds = this.#refunds.since(noted, w)
      const next = this.#cells.givenBack(v, w, { w: w0, receipt, limit, at, cost, refunds }, fresh)
      if (next === undefined) return false
      if (this.#cells.renewsEpoch) this.#refunds.count(base, false)
      if (compareExchange(words, base + ADM, v, next) === v) return this.#counted(base)
    }
  }

  refund(way: number, lo: number, hi: number, most: number, reading: Reading): number {
    const { words } = this.#cells
    const base = this.#cells.base(way)
    for (let tries = 0; ; tries = again(tries)) {
      const v = load(words, base + ADM)
      if (!this.#cells.isOf(v, way, lo, hi)) return GONE
      const w = read(words, base + TICK)
      const refunded = this.#cells.isAllOver(base, w, reading)
        ? undefined
        : this.#cells.refunded(v, w, most, this.#cells.presentLimit, reading)
      // To forget all: a longer window would still find what is in a cell at rest.
      const emptied =
        most === Number.MAX_SAFE_INTEGER && isSettled(w) ? this.#cells.emptied(v, tickOf(w)) : undefined
      const next = emptied ?? refunded?.next
      if (next === undefined) return 0
      this.#refunds.count(base, true)
      if (compareExchange(words, base + ADM, v, next) !== v) continue
      this.#counted(base)
      return refunded?.units ?? 0
    }
  }

  /** The meter stops at its end. */
  penalize(
    way: number,
    lo: number,
    hi: number,
    cost: number,
    reading: Reading,
    limit = this.#cells.presentLimit,
  ): boolean | typeof GONE {
    const { words } = this.#cells
    const base = this.#cells.base(way)
    for (let tries = 0; ; tries = again(tries)) {
      const v = load(words, base + ADM)
      if (!this.#cells.isOf(v, way, lo, hi)) return GONE
      const w = read(words, base + TICK)
      if (!this.#cells.isEntered(base, v, w, reading)) continue
      const next = this.#cells.penalized(v, w, cost, limit, reading)
      if (next === v || compareExchange(words, base + ADM, v, next) === v) return true
    }
  }

  /**
   * Raises the meter to the units. Until the conversion is finished the meter has only what other threads have
   * carried, as no decision by another record commits after the fence. What comes later comes on top of a
   * whole carry. @see Algorithm.carry
   */
  carry(base: number, units: number, reading: Reading): void {
    const { words, presentLimit } = this.#cells
    const cost = units >= UNKNOWN_UNITS ? presentLimit : units
    for (let tries = 0; ; tries = again(tries)) {
      const v = load(words, base + ADM)
      const w = read(words, base + TICK)
      if (!isSettled(w)) {
        this.#cells.settle(base, v, w)
        continue
      }
      const next = this.#cells.raised(v, w, cost, presentLimit, reading)
      if (next === v || compareExchange(words, base + ADM, v, next) === v) return
    }
  }

  get untilOfNextTry(): number {
    return this.#blocking.untilOfNextTry
  }

  block(way: number, lo: number, hi: number, until: number): boolean | typeof GONE {
    return this.#blocking.block(way, lo, hi, until)
  }

  unblock(way: number, lo: number, hi: number, reading: Reading): boolean | typeof GONE {
    const base = this.#cells.base(way)
    for (let was = false, tries = 0; ; tries = again(tries)) {
      const v = load(this.#cells.words, base + ADM)
      if (!this.#cells.isOf(v, way, lo, hi)) return GONE
      if ((v & SHUT) === 0) return was
      was = this.#cells.isBlocked(base, v, reading.nowMs)
      if (this.#cells.endBlock(base, v)) return this.#counted(base) && was
    }
  }

  /** The cell has another epoch, perhaps. */
  #counted(base: number): true {
    this.#cells.epochs.count(base)
    return true
  }
}
