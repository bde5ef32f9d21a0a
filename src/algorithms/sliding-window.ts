/**
 * A strict sliding window in shared memory.
 *
 * The promise: the cost admitted for a key in any window is at most the limit, whatever any number of threads do at
 * once and wherever one of them dies. There are no locks: a thread that dies would leave one held. Every step is one
 * atomic operation on one word of the key's cell (`memory/layout.ts` has the map), and the order of the steps is the
 * whole protocol.
 *
 * **The words.** A charge goes into the bucket of its tick. The admission word counts what was admitted: its `total`
 * is the sum of the window as of some earlier moment, plus each admission since. Time only takes from a window, so
 * `total` errs high, never low, and needs no upkeep when time passes: it is summed anew only when it would refuse.
 *
 * **The clock** is read once for a decision, before anything else. However old the reading is when it is used, the cell's
 * tick only moves forward, and a way's tick is at the clock before a key lives there (`memory/insertion.ts`, "settle"): so a
 * decision is never placed before one that its key was admitted by. It counts at its reading or at the newest tick that its
 * cell had seen, whichever is later.
 *
 * **Deciding** (`decide`), once the key's way is found and its tick is at the reading's (`enter`):
 *
 *  1. Load the admission word v. All that v counts was in the buckets before it was in v. The way must be LIVE, and its
 *     name, read after v, still the key's: then any change of hands makes a later compare-exchange on v fail.
 *  2. Read the cell's tick e, after v. Were it read before, it could be older than an admission that v counts.
 *  3. No room in v: sum. Else *charge* the bucket of e, then *commit*: CAS(v -> total + cost). Bucket first: whoever
 *     sums in between counts a charge that may yet be taken back, which errs high; the other way round it would miss
 *     one that was admitted.
 *  4. The commit fails: something else happened to the cell. If the tick is still e and there is room in the word as it
 *     is now, commit there, with a new epoch: a sum may have counted this charge already, and its "full" would outlive
 *     the reason. Otherwise take the charge out again (`undo`) and decide again.
 *
 * **The attempt** (`attempt`) comes before all that and settles most decisions. It charges at once, and looks at the name
 * and the tick again behind the compare-exchange of the bucket, which stands in for the loads in order of 1 and 2 (on
 * x64; see `readInOrder`): two atomic operations instead of three. Whatever is not as usual goes the way above.
 *
 * **Summing** (`resum`). Read the buckets e - n to e, CAS(v -> the sum, epoch + 1), then note in AS_OF that the word
 * with this epoch was summed in tick e. While both still stand, a refusal costs at most one atomic load and writes
 * nothing. The new epoch is what makes a commit fail whose v is older than the sum, even if the total is the same number again.
 * A thread that takes something out of a bucket (`stale`) would make the sum lower: its new epoch fails the sums under way,
 * and then it ends the note. The epoch alone would not do: 256 new ones bring it back, and the old note with it. The epoch
 * comes first: a sum that reads the new one sees the bucket as it is now. A sum that went through just before may write its
 * note late, over the end; that note has an old epoch, and the next thread that takes something out ends it, too.
 *
 * **A bucket of another lap** is taken over by CAS(b -> this lap, cost). A thread that stalled for a lap or more must not
 * do so, it would erase counts of a newer lap: so it reads the tick once more, after the bucket. If the tick was within
 * a lap of e then, b was not newer, and if b has changed since, the CAS fails.
 *
 * **Laps and epochs have eight bits.** A count left for exactly 256 laps would count again: the sweep (`ring.ts`)
 * clears it long before. A thread stopped in the middle of one decision for exactly 256 laps, or for 256 changes of the
 * admission word that end in the very same value, is not told apart. An epoch is compared with one of an earlier call by the
 * note and by decisions that are read (`epochs.ts`). The note's time comes round, too: it ends where the tick passes a multiple of 2^18.
 *
 * **A dead thread** leaves at most a charge that nobody admitted. It expires with its bucket.
 *
 * Each rule here, left out, lets `npm run model -- --broken` find the schedule in which it goes wrong.
 */
import type { Reading } from '../core/reading.js'
import type { Edge } from '../core/rule.js'
import {
  ADM,
  AS_OF,
  BLOCKED,
  BUCKETS,
  COUNT,
  EPOCH,
  HI,
  LAP,
  LIVE,
  NAMES_AT,
  NO_NOTE,
  NOTED,
  ONE_EPOCH,
  REFUNDS,
  type Shape,
  STATE,
  TICK,
  TIME,
  UNTIL,
} from '../memory/layout.js'
import { compareExchange, isStill, load, read, readInOrder, type Words, write } from '../memory/words.js'
import { LATE, OVERFLOWN } from '../range-sum/range-sum.js'
import { BlockTime } from './block-time.js'
import { Charges } from './charges.js'
import { Epochs } from './epochs.js'
import { RefundMarks } from './refund-marks.js'
import { Ring } from './ring.js'

/** What `attempt` and `decide` found. */
export const UNDECIDED = -2
export const GONE = -1 // the way is not the key's any more: look it up again, with a new reading of the clock
export const FULL = 0
export const ADMITTED = 1

/** The tick in steps of half of what AS_OF's 23 bits of time tell apart (sixteenths take four of them). */
export const STEP_BITS = 18

export class SlidingWindow {
  readonly ring: Ring
  readonly marks: RefundMarks
  readonly charges: Charges
  readonly words: Words
  readonly shape: Shape
  readonly #smooth: boolean
  readonly hasNodes: boolean
  readonly until: BlockTime
  readonly epochs: Epochs
  /** The cell's tick at the last decision, where an admission was charged, and the charge's stamp: what giving back needs. */
  chargedTick = 0
  chargedStamp = 0
  /** The admission word that the last decision left, or refused by. With `chargedTick` it says whether the cell has changed since. */
  lastAdm = 0
  /** The word of UNTIL that was read last: of a refusal by a blocked `lastAdm`, what it was refused by. */
  lastUntil = 0

  constructor(words: Words, shape: Shape, edge: Edge, originMs: number) {
    this.words = words
    this.shape = shape
    this.ring = new Ring(words, shape, originMs)
    this.marks = new RefundMarks(words, shape)
    this.charges = new Charges(words, shape, this.ring, this.marks, this)
    this.#smooth = edge === 'smooth'
    this.hasNodes = shape.sums !== 'linear'
    this.until = new BlockTime(originMs)
    this.epochs = new Epochs(shape)
  }

  /** Brings a cell's tick up to the reading. Plain: a tick read late makes the compare-exchange fail. */
  enter(base: number, reading: Reading): void {
    const tick = read(this.words, base + TICK)
    if (tick !== reading.tick) this.#advance(base, tick, reading)
  }

  /** @see Cells.begin */
  begin(base: number, reading: Reading): void {
    this.ring.begin(base, reading)
  }

  /** @see Cells.isExpired */
  isExpired(base: number, tick: number, reading: Reading): boolean {
    return this.ring.isExpired(base, tick, reading)
  }

  /** @see Cells.isPast */
  isPast(base: number, tick: number, reading: Reading): boolean {
    return this.ring.isPast(base, tick, reading)
  }

  #advance(base: number, tick: number, reading: Reading): void {
    const moved = this.ring.advance(base, tick, reading)
    const passed = moved >= 2 ** STEP_BITS // or round it all: a clock far back moves a tick nearly the whole modulus on
    if (passed || (moved > 0 && tick >>> STEP_BITS !== reading.tick >>> STEP_BITS)) this.bumpEpoch(base)
  }

  /**
   * The usual case of `decide`, tried once and short enough for V8 to inline: the cell's tick is at the reading's, its
   * bucket is of this lap and unmarked or the cell known to be full, and nobody comes in between; else UNDECIDED. `cost` is at least 1.
   *
   * Before the charge the tick must be at e, or a sweep on its way there could take the charge for a leftover. After it
   * (and so after v, which is read in order before that) the name and the tick are looked at again. A charge that did not
   * come to be committed is taken out, unless a refund by key has marked its bucket; then it may stay for a window.
   */
  attempt(way: number, lo: number, hi: number, cost: number, limit: number, reading: Reading): number {
    const { words, ring } = this
    const base = this.base(way)
    const e = reading.tick
    const v = readInOrder(words, base + ADM)
    if (!this.#isCurrent(v, way, lo, hi, e)) return UNDECIDED
    if ((v & COUNT) + cost > limit)
      return this.#isKnownFull(base, v, e, reading) ? this.#full(v, e) : UNDECIDED
    if (this.hasNodes) return UNDECIDED // to charge, too
    const at = base + BUCKETS + ring.slot(e)
    const b = read(words, at)
    if ((b & (LAP | REFUNDS)) !== ring.lap || (b & COUNT) + cost > COUNT) return UNDECIDED
    if (compareExchange(words, at, b, b + cost) !== b) return UNDECIDED
    if (this.#isCurrent(v, way, lo, hi, e)) {
      return this.#commit(way, lo, hi, cost, limit, e, v, 0) ? ADMITTED : UNDECIDED
    }
    this.charges.undo(base, e, cost, 0)
    return UNDECIDED
  }

  /** Admits `cost` units (1 to `limit`) of the key whose way this may be, or says FULL or GONE. */
  decide(way: number, lo: number, hi: number, cost: number, limit: number, reading: Reading): number {
    const { words } = this
    const base = this.base(way)
    for (;;) {
      const v = load(words, base + ADM)
      if (!this.isOf(v, way, lo, hi)) return GONE
      const e = read(words, base + TICK)
      if ((v & COUNT) + cost > limit) {
        if (this.#isKnownFull(base, v, e, reading)) return this.#full(v, e)
        this.resum(base, v, e, reading)
        continue // whether this sum went through or another's: v has changed
      }
      const charged = this.charges.charge(base, e, cost)
      if (charged === LATE) continue
      if (charged === OVERFLOWN) return this.#full(v, e)
      if (this.#commit(way, lo, hi, cost, limit, e, v, this.charges.stamp)) return ADMITTED
    }
  }

  /** The key's way: LIVE, and its name read after the admission word `v`. */
  isOf(v: number, way: number, lo: number, hi: number): boolean {
    if ((v & STATE) !== LIVE || read(this.words, NAMES_AT + way) !== lo) return false
    return read(this.words, this.base(way) + HI) === hi
  }

  /** Takes down the admission word and the tick of a way, as a decision does; false: it is not the key's. */
  observe(way: number, lo: number, hi: number): boolean {
    const v = load(this.words, this.base(way) + ADM)
    if (!this.isOf(v, way, lo, hi)) return false
    this.#full(v, read(this.words, this.base(way) + TICK))
    return true
  }

  /** Whether no operation on the way has ended since its admission word was `v` and its tick `e`. */
  isUnchanged(way: number, lo: number, hi: number, v: number, e: number): boolean {
    return load(this.words, this.base(way) + ADM) === v && this.#isCurrent(v, way, lo, hi, e)
  }

  /** The same after the way's buckets have been read. Means something only where {@link isUnchanged} held before. */
  isStillUnchanged(way: number, v: number, e: number): boolean {
    const base = this.base(way)
    return isStill(this.words, base + ADM, v) && read(this.words, base + TICK) === e
  }

  #full(v: number, e: number): typeof FULL {
    this.lastAdm = v
    this.chargedTick = e
    return FULL
  }

  #isCurrent(v: number, way: number, lo: number, hi: number, e: number): boolean {
    return read(this.words, this.base(way) + TICK) === e && this.isOf(v, way, lo, hi)
  }

  base(way: number): number {
    return this.shape.waysAt + way * this.shape.wayWords
  }

  /** Step 4 of a charge made in tick e, with its stamp; false: it has been taken out again. */
  #commit(
    way: number,
    lo: number,
    hi: number,
    cost: number,
    limit: number,
    e: number,
    v: number,
    stamp: number,
  ): boolean {
    const found = compareExchange(this.words, this.base(way) + ADM, v, v + cost)
    if (found !== v && !this.#commitAgain(way, lo, hi, cost, limit, e, stamp, found)) return false
    if (found === v) this.lastAdm = v + cost
    this.chargedTick = e
    this.chargedStamp = stamp
    return true
  }

  /** The first compare-exchange found `x`: commits there, or takes the charge out. */
  #commitAgain(
    way: number,
    lo: number,
    hi: number,
    cost: number,
    limit: number,
    e: number,
    stamp: number,
    x: number,
  ): boolean {
    const base = this.base(way)
    while (this.isOf(x, way, lo, hi) && read(this.words, base + TICK) === e && (x & COUNT) + cost <= limit) {
      const next = (x + ONE_EPOCH + cost) | 0
      const found = compareExchange(this.words, base + ADM, x, next)
      if (found === x) {
        this.lastAdm = next
        return true
      }
      x = found
    }
    this.charges.undo(base, e, cost, stamp)
    return false
  }

  /** Something left a bucket: a sum made before is too high. A new epoch fails those under way; then the note ends. */
  bumpEpoch(base: number): void {
    for (;;) {
      const v = load(this.words, base + ADM)
      if ((v & STATE) !== LIVE) return
      if (compareExchange(this.words, base + ADM, v, (v + ONE_EPOCH) | 0) === v) break
    }
    this.epochs.count(base)
    this.endNote(base)
  }

  /**
   * After a new epoch. Plain: a thread that still sees the note has the epoch to tell it by, and whoever gives the next one
   * does so by a compare-exchange, which this comes before.
   */
  endNote(base: number): void {
    write(this.words, base + AS_OF, NO_NOTE)
  }

  /** Whether v, which has no room, is known to be so still: the key is blocked, or was summed in this very tick. */
  #isKnownFull(base: number, v: number, e: number, reading: Reading): boolean {
    // Plain: a note that is read late is of another epoch or time, and costs a sum.
    if (read(this.words, base + AS_OF) === this.#noteOf(v, e, this.sixteenthOf(e, reading))) return true
    return this.isBlocked(base, v, reading.nowMs)
  }

  /** CAS(v -> the sum as of tick e, new epoch), then the note. Whether it went through. */
  resum(base: number, v: number, e: number, reading: Reading): boolean {
    const sixteenth = this.sixteenthOf(e, reading)
    const sum = this.ring.sum(base, e, sixteenth)
    if (this.hasNodes && read(this.words, base + TICK) !== e) return false // see `range-sum/fenwick.ts`
    const next = ((v & ~COUNT) + ONE_EPOCH) | sum | 0
    if (compareExchange(this.words, base + ADM, v, next) !== v) return false
    write(this.words, base + AS_OF, this.#noteOf(next, e, sixteenth))
    return true
  }

  #noteOf(v: number, e: number, sixteenth: number): number {
    return (v & EPOCH) | NOTED | ((this.#smooth ? (e << 4) | sixteenth : e) & TIME)
  }

  /** How far the window's edge is into the oldest bucket, for the smooth edge; 0 counts it whole. */
  sixteenthOf(e: number, reading: Reading): number {
    return this.#smooth && e === reading.tick ? reading.sixteenth : 0
  }

  /** @see Cells.isBlocked */
  isBlocked(base: number, v: number, nowMs: number): boolean {
    return (v & COUNT) === BLOCKED && this.blockedMs(base, nowMs) > 0
  }

  /** How long UNTIL is still to come: at most 0 where it has passed. Means something only where `v` says blocked. */
  blockedMs(base: number, nowMs: number): number {
    this.lastUntil = load(this.words, base + UNTIL)
    return this.until.leftMs(this.lastUntil, nowMs)
  }
}
