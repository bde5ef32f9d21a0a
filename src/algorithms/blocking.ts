import { again } from '../core/tries.js'
import { ADM, ONE_EPOCH, UNTIL } from '../memory/layout.js'
import { compareExchange, load, type Words } from '../memory/words.js'
import { type Algorithm, GONE } from './algorithm.js'
import { nextUntil } from './block-time.js'

/** What blocking needs of an algorithm. */
interface Blockable extends Pick<Algorithm, 'base' | 'blockMask' | 'epochs'> {
  readonly words: Words
  isOf(v: number, way: number, lo: number, hi: number): boolean
  /** Called after a block has begun. */
  onBlock(base: number): void
}

/**
 * Blocks keys until a word of UNTIL. UNTIL is written before the admission word: a blocked admission word with
 * an old UNTIL would be no block. Both are written by CAS, and the admission word is loaded between them, so a
 * way that went to another key keeps its own.
 *
 * A thread that stalls before its CAS of UNTIL still expects the word that it found, and its key may lose
 * the way to this one meanwhile. So it must not find that word again. A block whose word an earlier block
 * has left ends a sixteenth of a second later, and so does each further try, which may have left its word
 * itself. (A stalled thread may find 0, which is in every unused way, and FOR_EVER.)
 */
export class Blocking {
  readonly #algorithm: Blockable
  /** @see CellAdjustments.untilOfNextTry */
  untilOfNextTry = 0

  constructor(algorithm: Blockable) {
    this.#algorithm = algorithm
  }

  /** @see CellAdjustments.block */
  block(way: number, lo: number, hi: number, until: number): boolean | typeof GONE {
    const { words, blockMask } = this.#algorithm
    const base = this.#algorithm.base(way)
    this.untilOfNextTry = until
    for (let tries = 0; ; tries = again(tries)) {
      const end = this.untilOfNextTry
      const u = load(words, base + UNTIL)
      const v = load(words, base + ADM)
      if (!this.#algorithm.isOf(v, way, lo, hi)) return GONE
      const isSameAsBefore = u === (end | 0) && (v & blockMask) !== blockMask && u !== 0
      const next = isSameAsBefore ? nextUntil(end) : end | 0
      if (compareExchange(words, base + UNTIL, u, next) !== u) continue
      this.untilOfNextTry = nextUntil(next)
      const shut = ((v | blockMask) + ONE_EPOCH) | 0
      if (compareExchange(words, base + ADM, v, shut) !== v) continue
      this.#algorithm.epochs.count(base)
      this.#algorithm.onBlock(base)
      return true
    }
  }
}
