import type { Reading } from '../../core/reading.js'
import { again } from '../../core/tries.js'
import { ADM, TICK, UNTIL } from '../../memory/layout.js'
import { load, read } from '../../memory/words.js'
import type { CellEstimates, Foresight } from '../algorithm.js'
import { isSettled, SHUT, tickOf } from './meter.js'
import type { WordCells } from './word-cells.js'

/**
 * Computes what happens to a cell if no other operation changes it, from its admission word and its tick. Each
 * result is a snapshot.
 */
export class WordEstimates implements CellEstimates {
  readonly #cells: WordCells
  readonly #foresight = { used: 0, fitsMs: 0, emptyMs: 0 }

  constructor(cells: WordCells) {
    this.#cells = cells
  }

  used(base: number, reading: Reading, limit: number): number {
    return this.#view(base, reading, 0, (v, w) => this.#cells.unitsAt(v, w, reading, limit))
  }

  usedAtCharge(base: number, _tick: number, reading: Reading, limit: number): number {
    return this.used(base, reading, limit)
  }

  /** The word does not say when its units were charged: all that count. */
  usedInLast(base: number, reading: Reading): number {
    return this.used(base, reading, this.#cells.presentLimit)
  }

  foresee(base: number, room: number, reading: Reading, limit: number): Foresight {
    const foresight = this.#foresight
    foresight.used = 0
    foresight.fitsMs = 0
    foresight.emptyMs = 0
    this.#view(base, reading, undefined, (v, w) => {
      foresight.used = this.#cells.unitsAt(v, w, reading, limit)
      foresight.fitsMs = this.#cells.untilRoom(v, w, limit - room, limit, reading)
      foresight.emptyMs = this.#cells.untilOver(v, w, reading)
    })
    return foresight
  }

  untilAdmitted(base: number, cost: number, limit: number, reading: Reading): number {
    return Math.max(this.untilFits(base, cost, limit, reading), this.untilUnblocked(base, reading))
  }

  untilFits(base: number, cost: number, limit: number, reading: Reading): number {
    return this.#view(base, reading, 0, (v, w) => this.#cells.untilRoom(v, w, cost, limit, reading))
  }

  untilEmpty(base: number, reading: Reading): number {
    return this.#view(base, reading, 0, (v, w) => this.#cells.untilOver(v, w, reading))
  }

  untilGone(w: number, reading: Reading, adm: number): number {
    return isSettled(w) ? this.#cells.untilOver(adm, w, reading) : 0
  }

  untilUnblocked(base: number, reading: Reading): number {
    const { words, until } = this.#cells
    if ((load(words, base + ADM) & SHUT) === 0) return 0
    return until.wholeMs(load(words, base + UNTIL), reading.nowMs)
  }

  untilExpired(base: number, reading: Reading): number {
    const { ticks } = this.#cells
    return this.#view(base, reading, 0, (v, w) => {
      const toEmpty = this.#cells.ticksToEmpty(v, w)
      // See `WordCells.isExpired` and `Cells.isPast`.
      const free = reading.absoluteTick - this.#cells.ticksSince(w, reading) + toEmpty + 1
      return Math.max(0, ticks.untilPosition(reading.nowMs, free))
    })
  }

  startMs(w: number, readingMs: number): number {
    return this.#cells.ticks.startOf(tickOf(w), readingMs)
  }

  endMs(w: number, readingMs: number): number {
    return this.startMs(w, readingMs) + this.#cells.chargeTicks * this.#cells.ticks.granuleMs
  }

  get runsOff(): boolean {
    return this.#cells.runsOff
  }

  /** The start of the cell's tick, if it was ahead of the reading. */
  effectMs(w: number, readingMs: number): number {
    return Math.max(readingMs, this.startMs(w, readingMs))
  }

  /** Computes by both words of a cell, read together; `empty` if all of its counts are over. */
  #view<T>(base: number, reading: Reading, empty: T, compute: (v: number, w: number) => T): T {
    const { words } = this.#cells
    for (let tries = 0; ; tries = again(tries)) {
      const v = load(words, base + ADM)
      const w = read(words, base + TICK)
      if (load(words, base + ADM) === v)
        return this.#cells.isAllOver(base, w, reading) ? empty : compute(v, w)
    }
  }
}
