/**
 * The protocol of a strict sliding window in shared memory. `memory/layout.ts` defines the words used here.
 *
 * **The promise.** The cost admitted for a key in any window is at most the limit. This holds for any number
 * of threads, in any interleaving, and if a thread dies at any point. There are no locks, because a thread
 * that dies would leave its lock held. Each step is one atomic operation on one word of the key's cell. The
 * order of the steps is the protocol.
 *
 * **The counts.** A cell counts each admitted unit twice:
 *  - The bucket of a tick counts the units charged in that tick.
 *  - `total`, in the admission word, is the sum of the window's buckets at some earlier moment, plus each
 *    admission since. Units leave a window as time passes, but `total` does not fall. So it may be too high,
 *    never too low. It needs no upkeep: a decision sums the buckets again only if `total` leaves no room.
 *
 * **Two threads want the last unit.** The limit is 10, and 9 units are admitted. CAS is compare-exchange.
 *
 *     thread A                        thread B                                    bucket  total
 *     loads the admission word        loads the admission word                         9      9
 *     charges: CAS(bucket 9 -> 10)                                                    10      9
 *                                     charges: CAS(bucket 10 -> 11)                   11      9
 *     commits: CAS(total 9 -> 10)                                                     11     10  A: admitted
 *                                     commits: CAS(total 9 -> 10) fails               11     10
 *                                     takes its charge out: CAS(bucket 11 -> 10)      10     10
 *                                     sums the buckets: 10, no room                   10     10  B: refused
 *
 * Both charge, but only one commit can find a total of 9. The bucket comes first, because another thread may
 * sum between the two steps. That sum counts a charge that may yet be taken out, so at worst it refuses too
 * early. In the other order it would miss an admitted unit, and admit another one in its place.
 *
 * **A decision** (`decide`), on a cell whose tick `enter` has brought to the clock's reading:
 *
 *  1. Load the admission word v. All that v counts was in the buckets before it was in v. Then read the name,
 *     which must be the key's, while v says LIVE. If the way goes to another key later, each CAS that expects
 *     v fails.
 *  2. Read the cell's tick e, after v. A tick read before v could be older than an admission that v counts. A
 *     sum of the window that ends in e would miss that admission.
 *  3. If v has no room, sum and start again. Otherwise charge the bucket of e. Then commit: CAS(v -> v +
 *     cost).
 *  4. If the commit fails, another operation has changed the cell. If the way is still the key's, the tick is
 *     still e, and the new word has room, commit on the new word, with a new epoch. The change may be a sum
 *     that already counted this charge, so `total` may now count it twice. The new epoch ends the note of
 *     that sum, so the next decision without room sums again. Otherwise take the charge out (`Charges.undo`)
 *     and start again.
 *
 * **An attempt** (`attempt`) comes before `decide` and settles most decisions. It charges at once, then reads
 * the name and the tick again. The CAS of the bucket orders those reads after v, as the load of v does in
 * steps 1 and 2. (On machines that reorder reads, v itself is read by an atomic load: `readInOrder`.) So an
 * admission takes two atomic operations, not three. If anything is unusual, the attempt ends and `decide`
 * decides.
 *
 * **A sum** (`resum`) reads the buckets e - n to e, then does CAS(v -> the sum, epoch + 1), then writes the
 * note: the word with this epoch was summed in tick e. While both still match, a refusal takes at most one
 * atomic load and writes nothing. The new epoch makes each commit fail that still expects v, even if the sum
 * equals the old total. Such a commit may belong to an older tick, whose window contains buckets that the sum
 * left out.
 *
 * **Taking units out of a bucket** makes an earlier sum too high. So the thread gives the cell a new epoch
 * (`bumpEpoch`), which makes the sums under way fail, and then ends the note. The epoch alone is not enough:
 * 256 new epochs later the old one returns, and the old note would match again. The epoch comes first: a sum
 * that loads the new epoch reads the bucket as it is now. A sum that succeeded just before may write its note
 * late, after the end. That note has an old epoch, and the next thread that takes units out ends it.
 *
 * **A bucket of another lap** is replaced: CAS(b -> this lap, cost). A thread that stalled for a lap or more
 * must not do so, because it would erase the counts of a newer lap. So it reads the tick once more, after the
 * bucket. If the tick is less than a lap past e, b was not newer. If b has changed since, the CAS fails.
 *
 * **The clock** is read once for a decision, before everything else. The reading may be old when it is used.
 * But a cell's tick only moves forward, and a new key's way settles its tick by a new reading
 * (`memory/insertion.ts`). So a decision is never placed in an older tick than an admission of its key. It
 * counts at its reading or, if later, in its cell's tick.
 *
 * **Laps and epochs have 8 bits.** A count left alone for exactly 256 laps would count again, but the sweep
 * (`ring.ts`) clears it long before. A thread that stops inside one decision for exactly 256 laps can't
 * notice it. Nor can it notice 256 changes of the admission word that end in the same value. Notes and
 * decisions whose figures are read later compare an epoch with that of an earlier call (`epochs.ts`). A
 * note's time wraps too, so a new epoch ends the note when the tick passes a multiple of 2^18.
 *
 * **A dead thread** leaves at most one charge that is not admitted. It expires with its bucket.
 *
 * `npm run dev -- model --broken` leaves these rules out one at a time, and prints an interleaving that breaks
 * the promise.
 */
import { createRequire } from 'node:module'
import { lazily } from '../../core/lazily.js'
import type { Reading } from '../../core/reading.js'
import type { Edge } from '../../core/rule-algorithms.js'
import { Ticks } from '../../core/ticks.js'
import { ADM, BUCKETS, COUNT, LAP, REFUNDS, type Shape, TICK, TIME } from '../../memory/layout.js'
import { compareExchange, read, readInOrder, type Words } from '../../memory/words.js'
import { UNDECIDED } from '../algorithm.js'
import type { Adjustments } from './adjustments.js'
import { Charges } from './charges.js'
import { Estimates } from './estimates.js'
import { RefundMarks } from './refund-marks.js'
import { Ring } from './ring.js'
import { SummedCells } from './summed-cells.js'

const require = createRequire(import.meta.url)
const adjusting = lazily(() => require('./adjustments.js') as typeof import('./adjustments.js'))

/** A note has room for 19 bits of the tick, as the sixteenths take 4 of its 23. A step is half of that. */
export const STEP_BITS = 18

/** @see Algorithm */
export class SlidingWindow extends SummedCells {
  readonly estimates: Estimates
  #adjustments: Adjustments | undefined
  readonly hasWholeMs: boolean
  readonly ring: Ring
  readonly marks: RefundMarks
  readonly charges: Charges
  readonly #smooth: boolean
  readonly hasNodes: boolean
  protected readonly stepBits = STEP_BITS
  protected noteTime = 0

  constructor(words: Words, shape: Shape, edge: Edge, originMs: number, ticks = ticksOf(shape)) {
    super(words, shape, originMs)
    this.ring = new Ring(words, shape, originMs)
    this.marks = new RefundMarks(words, shape)
    this.charges = new Charges(words, shape, this.ring, this.marks, this)
    this.#smooth = edge === 'smooth'
    this.hasNodes = shape.sums !== 'linear'
    this.hasWholeMs = Number.isInteger(ticks.granuleMs) && !this.#smooth
    this.estimates = new Estimates(this, ticks, this.#smooth)
  }

  get adjustments(): Adjustments {
    this.#adjustments ??= new (adjusting().Adjustments)(this)
    return this.#adjustments
  }

  touch(way: number, tick: number): number {
    const base = this.base(way)
    return read(this.words, base + ADM) | read(this.words, base + BUCKETS + this.ring.slot(tick))
  }

  protected move(base: number, tick: number, reading: Reading): number {
    return this.ring.advance(base, tick, reading)
  }

  /**
   * Tries the usual case of `decide` once: the cell's tick is the reading's, its bucket has this lap and no
   * refund mark, and no other thread interferes; or the cell is known to be full. Everything else returns
   * UNDECIDED. `cost` is at least 1. The code is short enough for V8 to inline.
   *
   * The tick must be e before the charge: a sweep on its way to e could clear the charge as an old count. The
   * name and the tick are read again after the charge, and so after v, which is read in order. A charge that
   * is not committed is taken out. But if a refund by key has marked its bucket, it may stay for a window.
   */
  attempt(
    way: number,
    lo: number,
    hi: number,
    cost: number,
    limit: number,
    reading: Reading,
  ): ReturnType<SummedCells['attempt']> {
    const { words, ring } = this
    const base = this.base(way)
    const e = reading.tick
    const v = readInOrder(words, base + ADM)
    if (!this.isCurrent(v, way, lo, hi, e)) return UNDECIDED
    if ((v & COUNT) + cost > limit) return this.isKnownFull(base, v, e, reading) ? this.full(v, e) : UNDECIDED
    if (this.hasNodes) return UNDECIDED // `decide` charges the nodes
    const at = base + BUCKETS + ring.slot(e)
    const b = read(words, at)
    if ((b & (LAP | REFUNDS)) !== ring.lap || (b & COUNT) + cost > COUNT) return UNDECIDED
    if (compareExchange(words, at, b, b + cost) !== b) return UNDECIDED
    if (this.isCurrent(v, way, lo, hi, e)) {
      return this.commit(way, lo, hi, cost, limit, e, v, 0)
    }
    this.charges.undo(base, e, cost, 0)
    return UNDECIDED
  }

  get stamp(): number {
    return this.charges.stamp
  }

  protected charge(base: number, e: number, cost: number): number {
    return this.charges.charge(base, e, cost)
  }

  protected undo(base: number, e: number, cost: number, stamp: number): boolean {
    return this.charges.undo(base, e, cost, stamp)
  }

  isExpired(base: number, tick: number, reading: Reading): boolean {
    return this.ring.isExpired(base, tick, reading)
  }

  isPast(base: number, tick: number, reading: Reading): boolean {
    return this.ring.isPast(base, tick, reading)
  }

  begin(base: number, reading: Reading): void {
    this.ring.begin(base, reading)
  }

  protected sum(base: number, e: number, reading: Reading): number {
    const sixteenth = this.sixteenthOf(e, reading)
    const sum = this.ring.sum(base, e, sixteenth)
    if (this.hasNodes && read(this.words, base + TICK) !== e) return -1 // see `range-sum/fenwick.ts`
    this.noteTime = this.#timeOf(e, sixteenth)
    return sum
  }

  /** The sum was made in tick e, and for the smooth edge in the same sixteenth. */
  protected holds(note: number, e: number, reading: Reading): boolean {
    return (note & TIME) === this.#timeOf(e, this.sixteenthOf(e, reading))
  }

  #timeOf(e: number, sixteenth: number): number {
    return (this.#smooth ? (e << 4) | sixteenth : e) & TIME
  }

  /**
   * How many sixteenths of the oldest bucket have left the window, for the smooth edge. With 0 it counts
   * whole.
   */
  sixteenthOf(e: number, reading: Reading): number {
    return this.#smooth && e === reading.tick ? reading.sixteenth : 0
  }
}

const ticksOf = ({ windowMs, buckets, modulus, shift, offsetMs }: Shape): Ticks =>
  new Ticks(windowMs, buckets, modulus, shift, offsetMs)
