import type { Reading } from '../../core/reading.js'
import { again } from '../../core/tries.js'
import { TICK } from '../../memory/layout.js'
import { load } from '../../memory/words.js'
import { type Charge, type Charged, GONE } from '../algorithm.js'
import { SummedAdjustments } from '../window/summed-adjustments.js'
import type { SummedCells } from '../window/summed-cells.js'
import type { CellTime } from '../word/cell-time.js'
import type { LogEntries } from './log-entries.js'

/** What a log has. */
type Log = SummedCells & {
  readonly entries: LogEntries
  readonly time: CellTime
  readonly windowTicks: number
  dateOf(e: number, reading: Reading): number
  undo(base: number): boolean
}

/** Takes units out of entries, and charges what is not an admission (`sliding-log.ts`). */
export class LogAdjustments extends SummedAdjustments {
  readonly #log: Log

  constructor(log: Log) {
    super(log)
    this.#log = log
  }

  giveBack(way: number, { tick, receipt }: Charge, cost: number, reading: Reading): boolean {
    const { entries, time, words } = this.#log
    const base = this.#log.base(way)
    this.#log.enter(base, reading)
    const e = load(words, base + TICK)
    const date = time.after(tick, receipt & 1)
    if (time.distance(time.after(e, 1), date) > this.#log.windowTicks) return false // or e + 1 is the date
    const taken = entries.giveBack(base, e, cost, date, receipt)
    return this.taken(base, taken) > 0
  }

  /** The oldest first, so that no unit counts for too short a time. */
  refund(way: number, lo: number, hi: number, most: number, reading: Reading): number {
    const { entries } = this.#log
    const base = this.#log.base(way)
    this.#log.enter(base, reading)
    if (this.tickOf(way, lo, hi) === undefined) return GONE
    let left = most
    for (let tries = 0; left > 0; tries = again(tries)) {
      const e = this.tickOf(way, lo, hi)
      if (e === undefined) break
      const found = entries.oldest(base, e, left)
      // After the entries: they are not those of the way's next key.
      if (found.length === 0 || this.tickOf(way, lo, hi) === undefined) break
      entries.countRefund(base)
      for (const { at, entry } of found) if (entries.clear(at, entry)) left--
    }
    return this.taken(base, most - left)
  }

  undo(base: number): void {
    this.#log.undo(base)
  }

  /**
   * Charges what is free. For what is left, the oldest entries get the date of the charge: a log of the newest units
   * decides as one of all would.
   */
  protected chargeAsFits(
    base: number,
    units: number,
    tickOf: () => number | undefined,
    reading: Reading,
  ): Charged | undefined {
    const { entries } = this.#log
    const amount = Math.min(units, entries.length)
    for (let tries = 0; ; tries = again(tries)) {
      const e = tickOf()
      if (e === undefined) return undefined
      const date = this.#log.dateOf(e, reading)
      const free = entries.chargeFree(base, e, amount, date)
      if (free < 0) {
        this.#log.undo(base)
        continue
      }
      for (let left = amount - free, tries = 0; left > 0; tries = again(tries))
        for (const { at, entry } of entries.oldest(base, e, left)) if (entries.redate(at, entry, date)) left--
      return { amount, e }
    }
  }
}
