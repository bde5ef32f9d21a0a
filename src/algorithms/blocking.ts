import { again } from '../core/tries.js'
import { leftUntil, nextUntil } from '../memory/block-time.js'
import { ADM, ONE_EPOCH, UNTIL } from '../memory/layout.js'
import { compareExchange, load, type Words } from '../memory/words.js'
import { type Algorithm, GONE } from './algorithm.js'

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
 * the way to this one meanwhile. So the CAS must not find that word again. A way that changes hands has its
 * end changed by `leftUntil` (`Cells.leaveBlock`). So an end that is still in UNTIL as it is was set for this
 * key, and a block may end there again: a stalled thread that expects it blocks the same key. A block whose
 * end a former key has left ends a sixteenth of a second later, and so does its next try, in whichever way.
 * (For ever is left as it is, and so is 0, which is in every unused way.)
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
      const u = load(words, base + UNTIL)
      const v = load(words, base + ADM)
      if (!this.#algorithm.isOf(v, way, lo, hi)) return GONE
      if (u === leftUntil(this.untilOfNextTry)) this.untilOfNextTry = nextUntil(this.untilOfNextTry)
      if (compareExchange(words, base + UNTIL, u, this.untilOfNextTry | 0) !== u) continue
      const shut = ((v | blockMask) + ONE_EPOCH) | 0
      if (compareExchange(words, base + ADM, v, shut) !== v) continue
      this.#algorithm.epochs.count(base)
      this.#algorithm.onBlock(base)
      return true
    }
  }
}
