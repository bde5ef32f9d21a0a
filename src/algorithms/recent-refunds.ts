import { AS_OF } from '../memory/layout.js'
import { compareExchange, load, type Words } from '../memory/words.js'
import { tickOf } from './meter.js'

const COUNT_BITS = 9
const MOST = (1 << COUNT_BITS) - 1
const PERIODS = 2 ** (32 - 2 * COUNT_BITS)
/** An epoch has 8 bits. */
const FEW = 255

/**
 * Counts the refunds of a cell in AS_OF, which has no other use there: `period:14 | refunds in the period before:9
 * | in the period:9`, both at most 511.
 *
 * Each refund gives the cell a new epoch. So the epoch of a receipt tells whether there was a refund since the
 * charge, if there were fewer than 256: after that many, the same epoch returns. A period is as long as a refund
 * can matter to an earlier charge, so two periods have all those since the charge.
 *
 * A refund is counted before it changes the admission word. So a thread that loads AS_OF after the admission word
 * finds each refund that the word has.
 */
export class RecentRefunds {
  readonly #cells: { readonly words: Words; readonly refundTicks: number }

  constructor(cells: { readonly words: Words; readonly refundTicks: number }) {
    this.#cells = cells
  }

  /** Counts a refund in a cell with this word of TICK. */
  count(base: number, w: number): void {
    const { words } = this.#cells
    const period = this.#periodOf(w)
    for (;;) {
      const found = load(words, base + AS_OF)
      const [before, now] = countsIn(found, period)
      const next = (period << (2 * COUNT_BITS)) | (before << COUNT_BITS) | Math.min(now + 1, MOST)
      if (compareExchange(words, base + AS_OF, found, next) === found) return
    }
  }

  /** Whether there were few refunds of late. */
  areFew(base: number, w: number): boolean {
    const [before, now] = countsIn(load(this.#cells.words, base + AS_OF), this.#periodOf(w))
    return before + now < FEW
  }

  #periodOf(w: number): number {
    return Math.floor(tickOf(w) / this.#cells.refundTicks) % PERIODS
  }
}

/** The refunds in the period before `period`, and in `period`. */
function countsIn(word: number, period: number): readonly [number, number] {
  const since = (period - (word >>> (2 * COUNT_BITS)) + PERIODS) % PERIODS
  const before = (word >>> COUNT_BITS) & MOST
  const now = word & MOST
  if (since === 0) return [before, now]
  return since === 1 ? [now, 0] : [0, 0]
}
