import type { Shape } from '../memory/layout.js'

const MAX_SLOTS = 1024
/** V8 keeps arrays of up to 64 bytes on its heap: most limiters of a process may never have more keys than this. */
const FEWEST_SLOTS = 16
/** Slots become this many times as many. */
const GROWTH = 4
/** An era ends after this many counted epochs in one slot. */
const EPOCHS_PER_ERA = 32
/** An era of fewer slots than there may be ends earlier, as more slots tell more ways apart. */
const EPOCHS_PER_EARLY_ERA = 4
/**
 * A decision trusts its cell's admission word up to this many counted epochs since the decision's era began.
 */
const MAX_NEW_EPOCHS = 64

const NO_COUNTS = new Uint32Array(1)

/**
 * Counts the epochs that this thread gives cells by operations other than decisions: refunds, penalties,
 * blocks and their ends, and insertions. After 256 new epochs a cell may have the same admission word again,
 * although it has changed. So a decision whose figures are read later must know how many epochs its cell has
 * had since.
 *
 * Ways share slots, one count each: 16 at first, and after each of the first eras four times as many, up to 1,024.
 * The thread's time is divided into *eras*. The counts at the beginning of an era give an upper bound of the new
 * epochs of a way since then. A decision keeps only a reference to these counts. A slot that is divided hands its
 * count to each of its parts, so the bound holds across a growth, too.
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
  #counts = new Uint32Array(FEWEST_SLOTS)
  #begun = NO_COUNTS
  /** Called at the beginning of each era except the first. */
  onEra: () => void = () => {}

  constructor(shape: Shape) {
    this.#shape = shape
  }

  /** The counts at the beginning of this era. */
  get begun(): Uint32Array {
    return this.#begun
  }

  /** @see Cells.epochs */
  count(base: number): void {
    const { ways, waysAt, wayWords } = this.#shape
    const way = (base - waysAt) / wayWords
    const counts = this.#counts
    counts[way % counts.length]!++
    const most = Math.min(ways, MAX_SLOTS)
    const isEarly = counts.length < most
    if (this.#since(this.#begun, way) < (isEarly ? EPOCHS_PER_EARLY_ERA : EPOCHS_PER_ERA)) return
    if (isEarly) this.#counts = divided(counts, Math.min(most, GROWTH * counts.length))
    this.#begun = this.#counts.slice()
    this.onEra()
  }

  /** Whether an unchanged admission word still proves that the way has not changed since that era began. */
  isWithinEpochs(begun: Uint32Array, way: number): boolean {
    return this.#since(begun, way) <= MAX_NEW_EPOCHS
  }

  /** At least the counted epochs of the way since then. */
  #since(begun: Uint32Array, way: number): number {
    return (this.#counts[way % this.#counts.length]! - begun[way % begun.length]!) >>> 0
  }
}

/** The counts with more slots: a multiple of as many as before, or one for each way. */
const divided = (counts: Uint32Array, slots: number): Uint32Array<ArrayBuffer> =>
  new Uint32Array(slots).map((_, slot) => counts[slot % counts.length]!)
