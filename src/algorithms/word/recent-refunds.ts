import { again } from '../../core/tries.js'
import { AS_OF, TICK } from '../../memory/layout.js'
import { compareExchange, load, type Words } from '../../memory/words.js'
import { tickOf } from './meter.js'

const COUNT_BITS = 8
const MOST = (1 << COUNT_BITS) - 1
/** A refund by key was among them. */
const BY_KEY = 1 << COUNT_BITS
const PART_BITS = COUNT_BITS + 1
const PART = (1 << PART_BITS) - 1
const PERIODS = 2 ** (32 - 2 * PART_BITS)

/** The refunds of a cell of late. */
export interface Refunds {
  /** At most 255 in each of two periods. */
  readonly count: number
  /** Whether there was a refund by key. */
  readonly byKey: boolean
}

/** Fewer than the 256 epochs after which one returns. */
export const areFew = ({ count }: Refunds): boolean => count < MOST

/**
 * Counts the refunds of a cell in AS_OF, which has no other use there: `period:14`, then for the period before and
 * for this one `by key:1 | refunds:8`.
 *
 * Each refund gives the cell a new epoch. So the epoch of a receipt tells whether there was a refund since the
 * charge, if there were fewer than 256: after that many, the same epoch returns. A period is as long as a refund
 * can matter to an earlier charge, so two periods have all those since the charge.
 *
 * A refund is counted before it changes the admission word. So a thread that loads AS_OF after the admission word
 * finds each refund that the word has. A thread that uses AS_OF loads TICK after it. So that tick is no older than the
 * period in AS_OF: a thread that stalls never starts an older period again.
 */
export class RecentRefunds {
  readonly #cells: { readonly words: Words; readonly refundTicks: number }

  constructor(cells: { readonly words: Words; readonly refundTicks: number }) {
    this.#cells = cells
  }

  /** Counts a refund, by key or of a decision. */
  count(base: number, byKey: boolean): void {
    const { words } = this.#cells
    for (let tries = 0; ; tries = again(tries)) {
      const found = load(words, base + AS_OF)
      const period = this.#periodOf(load(words, base + TICK))
      const [before, now] = partsIn(found, period)
      const part = Math.min((now & MOST) + 1, MOST) | (now & BY_KEY) | (byKey ? BY_KEY : 0)
      const next = (period << (2 * PART_BITS)) | (before << PART_BITS) | part
      if (compareExchange(words, base + AS_OF, found, next) === found) return
    }
  }

  /** The refunds of the period of `w` and of the one before, by `noted`, the word of AS_OF. `w` was read after it. */
  since(noted: number, w: number): Refunds {
    const [before, now] = partsIn(noted, this.#periodOf(w))
    return { count: (before & MOST) + (now & MOST), byKey: ((before | now) & BY_KEY) !== 0 }
  }

  #periodOf(w: number): number {
    return Math.floor(tickOf(w) / this.#cells.refundTicks) % PERIODS
  }
}

/** The parts of AS_OF for the period before `period`, and for `period`. */
function partsIn(word: number, period: number): readonly [number, number] {
  const since = (period - (word >>> (2 * PART_BITS)) + PERIODS) % PERIODS
  const before = (word >>> PART_BITS) & PART
  const now = word & PART
  if (since === 0) return [before, now]
  return since === 1 ? [now, 0] : [0, 0]
}
