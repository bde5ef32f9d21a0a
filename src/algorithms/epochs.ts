import type { Shape } from '../memory/layout.js'

const MAX_SLOTS = 1024
/** An era ends after this many counted epochs in one slot. */
const EPOCHS_PER_ERA = 32
/**
 * A decision trusts its cell's admission word up to this many counted epochs since the decision's era began.
 */
const MAX_NEW_EPOCHS = 64

/**
 * Counts the epochs that this thread gives cells by operations other than decisions: refunds, penalties,
 * blocks and their ends, and insertions. After 256 new epochs a cell may have the same admission word again,
 * although it has changed. So a decision whose figures are read later must know how many epochs its cell has
 * had since.
 *
 * Ways share at most 1,024 slots, one count each. The thread's time is divided into *eras*. The counts at the
 * beginning of an era give an upper bound of the new epochs of a way since then. A decision keeps only a
 * reference to these counts.
 *
 * Decisions give new epochs too, by sums, but the addon makes most of them, so they are not counted. A
 * decision sums a cell whose note does not match: once for each counted epoch, and once in each tick. With
 * the smooth edge, it sums once in each sixteenth of a tick. It sums again if a batch goes on with its older
 * reading when a sixteenth begins. That is less than 48 sums in all. So 64 counted epochs are less than 2 *
 * 64 + 48 = 176 epochs in one tick. The rest, up to 255, is for a clock that steps back by hours and on
 * again: it returns to a tick and sums twice for a counted epoch. An epoch of another tick is recognised by
 * its tick.
 */
export class Epochs {
  readonly #shape: Shape
  readonly #counts: Uint32Array
  #begun: Uint32Array
  /** Called at the beginning of each era except the first. */
  onEra: () => void = () => {}

  constructor(shape: Shape) {
    this.#shape = shape
    this.#counts = new Uint32Array(Math.min(shape.ways, MAX_SLOTS))
    this.#begun = this.#counts.slice()
  }

  /** The counts at the beginning of this era. */
  get begun(): Uint32Array {
    return this.#begun
  }

  /** @see Cells.epochs */
  count(base: number): void {
    const { waysAt, wayWords } = this.#shape
    const slot = ((base - waysAt) / wayWords) % this.#counts.length
    this.#counts[slot]!++
    if (this.#since(this.#begun, slot) < EPOCHS_PER_ERA) return
    this.#begun = this.#counts.slice()
    this.onEra()
  }

  /** Whether an unchanged admission word still proves that the way has not changed since that era began. */
  isWithinEpochs(begun: Uint32Array, way: number): boolean {
    return this.#since(begun, way % this.#counts.length) <= MAX_NEW_EPOCHS
  }

  #since(begun: Uint32Array, slot: number): number {
    return (this.#counts[slot]! - begun[slot]!) >>> 0
  }
}
