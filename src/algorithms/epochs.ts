import type { Shape } from '../memory/layout.js'

const MAX_SLOTS = 1024
/** An era ends once one slot has been given so many epochs in it. */
const EPOCHS_PER_ERA = 32
/** A decision trusts its cell's word until the cell's slot has been given more epochs than these since the decision's era began. */
const MAX_NEW_EPOCHS = 64

/**
 * Counts the epochs that this thread gives its limiter's cells by other calls than decisions: by refunds, penalties, blocks and
 * their ends, and keys that take a place. Epochs have eight bits: after 256 of them a cell may bear the admission word that a
 * decision left, and not be as it was then.
 *
 * Ways share slots, 1,024 at most. The counts as they were when an *era* began tell how many epochs a way has been given since, or
 * more. So a decision keeps only the counts of its era.
 *
 * Decisions give epochs too, where they sum. They are not counted: the addon makes most of them. A decision sums a cell whose note
 * does not hold: once for each counted epoch, and once a tick; with a smooth edge once a sixteenth of it, and again where a
 * batch goes on by its older reading at the step from one to the next, less than 48 times in all. So 64 counted epochs are
 * less than 2 * 64 + 48 = 176 in one tick. (The rest, up to 255, is for a clock that is set back by hours and on again: that
 * returns to a tick, and sums twice for a counted epoch.) An epoch of another tick is told by the tick.
 */
export class Epochs {
  readonly #shape: Shape
  readonly #counts: Uint32Array
  #begun: Uint32Array
  /** Called at the beginning of each era but the first. */
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

  /** Whether so few epochs came to the way since that era began that its word tells whether it has changed. */
  isWithinEpochs(begun: Uint32Array, way: number): boolean {
    return this.#since(begun, way % this.#counts.length) <= MAX_NEW_EPOCHS
  }

  #since(begun: Uint32Array, slot: number): number {
    return (this.#counts[slot]! - begun[slot]!) >>> 0
  }
}
