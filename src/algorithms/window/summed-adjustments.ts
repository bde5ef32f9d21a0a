import type { Reading } from '../../core/reading.js'
import { again } from '../../core/tries.js'
import { ADM, BLOCKED, COUNT, TICK } from '../../memory/layout.js'
import { load, read } from '../../memory/words.js'
import { type CellAdjustments, type Charge, type Charged, GONE } from '../algorithm.js'
import { Blocking } from '../blocking.js'
import type { SummedCells } from './summed-cells.js'

/**
 * Changes a key's counts in other ways than by admission: the same words in the same order as in
 * `sliding-window.ts`. Each method returns GONE if the way is not the key's any more. The caller then looks
 * the key up again.
 */
export abstract class SummedAdjustments implements CellAdjustments {
  readonly #cells: SummedCells
  readonly #blocking: Blocking

  constructor(cells: SummedCells) {
    this.#cells = cells
    this.#blocking = new Blocking(cells)
  }

  abstract giveBack(way: number, charge: Charge, cost: number, reading: Reading): boolean
  abstract refund(way: number, lo: number, hi: number, most: number, reading: Reading): number

  /**
   * Charges as many of `units` as fit, in the tick that `tickOf` returns. Returns the charge, or undefined if
   * `tickOf` returns undefined.
   */
  protected abstract chargeAsFits(
    base: number,
    units: number,
    tickOf: () => number | undefined,
    reading: Reading,
  ): Charged | undefined
  /** Takes the last charge out. */
  abstract undo(base: number, charged: Charged): void

  /**
   * Charges `cost` units even if there is no room, as far as the cell's counts go. They go beyond every limit.
   */
  penalize(way: number, lo: number, hi: number, cost: number, reading: Reading): boolean | typeof GONE {
    const base = this.#cells.base(way)
    this.#cells.enter(base, reading)
    for (let tries = 0; ; tries = again(tries)) {
      const charged = this.chargeAsFits(base, cost, () => this.tickOf(way, lo, hi), reading)
      if (charged === undefined) return GONE
      const { amount, e } = charged
      if (amount === 0 || this.#cells.commitPenalty(way, lo, hi, amount, e)) return true
      this.undo(base, charged)
    }
  }

  carry(base: number, units: number, reading: Reading): Charged | undefined {
    return this.chargeAsFits(base, units, () => load(this.#cells.words, base + TICK), reading)
  }

  get untilOfNextTry(): number {
    return this.#blocking.untilOfNextTry
  }

  block(way: number, lo: number, hi: number, until: number): boolean | typeof GONE {
    return this.#blocking.block(way, lo, hi, until)
  }

  /** Ends a block by a sum. Returns whether the key was blocked. */
  unblock(way: number, lo: number, hi: number, reading: Reading): boolean | typeof GONE {
    const { words } = this.#cells
    const base = this.#cells.base(way)
    this.#cells.enter(base, reading)
    for (let was = false, tries = 0; ; tries = again(tries)) {
      const v = load(words, base + ADM)
      if (!this.#cells.isOf(v, way, lo, hi)) return GONE
      if ((v & COUNT) !== BLOCKED) return was
      was = this.#cells.isBlocked(base, v, reading.nowMs)
      if (!this.#cells.resum(base, v, read(words, base + TICK), reading)) continue
      this.#cells.epochs.count(base)
      return was
    }
  }

  /** The cell's tick, read after the admission word, or undefined if the way is not the key's. */
  protected tickOf(way: number, lo: number, hi: number): number | undefined {
    const base = this.#cells.base(way)
    const v = load(this.#cells.words, base + ADM)
    return this.#cells.isOf(v, way, lo, hi) ? read(this.#cells.words, base + TICK) : undefined
  }

  /** The units that were taken out. A new epoch says that there are fewer. */
  protected taken(base: number, taken: number): number {
    if (taken > 0) this.#cells.bumpEpoch(base)
    return taken
  }
}
