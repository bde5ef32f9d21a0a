import { Reading } from '../core/reading.js'
import {
  ADM,
  CELL_RECORD,
  CONVERTING,
  HASH,
  HI,
  LIVE,
  MAX_TOTAL,
  ONE_EPOCH,
  type Shape,
  STATE,
  TICK,
} from '../memory/layout.js'
import type { Table } from '../memory/table.js'
import { compareExchange, load, read, type Words } from '../memory/words.js'
import type { Algorithm } from './algorithm.js'

/** How this thread counts by one record. */
export interface CellView {
  readonly algorithm: Algorithm
  readonly reading: Reading
}

/** How this thread counts by the present record, and by others. */
export interface CellViews {
  readonly present: CellView
  /** The reading of the present view. */
  readonly reading: Reading
  /** Undefined if no sound record has this index. */
  of(record: number): CellView | undefined
  /** Whether the rule has another record by now. */
  isOutdated(): boolean
  /** Goes on with the present rule. Returns whether the record has changed. */
  refresh(): boolean
}

/**
 * Brings a cell from the record it counts by to the present one. A changed window makes a new record. A cell
 * is converted in its place when a decision next looks for its key. All that it then counts counts for one
 * window of the new record from its last charge on, or at the latest from the conversion on. So a conversion
 * forgets nothing, and it errs to refusal for at most one window.
 *
 * The name of a cell bears its record (`memory/layout.ts`). A thread knows a cell only by the record that the
 * thread counts by: to all others the way is not the key's. The steps, to record r:
 *
 *  1. *Count*: load the admission word v and the tick e, then sum by the old record what the present window
 *     covers.
 *  2. *Flip*: CAS(name, old record -> CONVERTING, r). No decision begins on the cell from here on.
 *  3. *Fence*: load the admission word v, then check that the name is still that of step 2, then CAS(v -> v
 *     with a new epoch). A decision by the old record that is still under way has loaded its admission word
 *     before the fence, or it reads the name after the flip. So it can't commit after the fence. The total of
 *     this v contains every admitted unit, and does not change before step 7.
 *  4. *Place*: if v and e are still those of step 1, all units of the sum were charged by the end of e. So they
 *     count from there, if the decision's reading is later. Otherwise they count from a new reading of the
 *     clock, taken after the fence: other threads may have charged units after the decision's reading.
 *  5. *Advance* the cell's tick to that place, by r. Its ticks are two rings or more after those of the old
 *     record. So the old buckets count nothing any more. A thread that still charges one of them finds that
 *     it is late, as if it had stalled for two laps.
 *  6. *Carry*: charge the sum to the bucket of the tick, or the total if v or e have changed. Then bring the
 *     tick to the decision's reading, for which the sum was made: a thread with an older reading must not be
 *     admitted at a moment at which more counted.
 *  7. *Finish*: CAS(name, CONVERTING, r -> r). If it fails, another thread has finished, or has flipped the
 *     name to a later record. Then take out what step 6 charged.
 *
 * A thread that finds a name with CONVERTING does steps 3 to 7 itself, so a dead thread holds up no one. If
 * the name has an earlier record than the present one, the thread flips it to the present one, and carries the
 * total. If the way goes to another key meanwhile, the fence or the last step fails.
 *
 * **What is carried counts once.** Each of two threads that convert at once carries all units before it
 * finishes, because the other one may be dead. Only one can finish, as the record of a way only rises. The
 * other one takes its carry out again, as a decision that can't commit takes out its charge. So the units
 * count twice only for a moment, or for one window if a thread dies between steps 6 and 7, or if a refund by
 * key takes from the bucket in between. It would not do to carry only what the bucket lacks: a late decision
 * by the old record may have charged that bucket, and take its charge out after the look. A word (`meter.ts`)
 * holds no such charges. There a thread raises the meter to the units that it carries, and takes nothing out.
 * In a log the units may count twice for one window, up to the limit (`sliding-log.ts`).
 *
 * **The reading** of a decision is taken before its thread loads CURRENT. So no thread counts by a record, or
 * lets a cell of it expire, at a reading from after the end of that record. Otherwise it could forget what the
 * next record, whose window may be longer, has to carry. A conversion, and a claim of another key's way, load
 * CURRENT once more after their reading. So does step 4 after its new one: the thread may have stalled after
 * the fence while another one finished, decisions by r were admitted, and r ended.
 *
 * **The record of a way only rises**: a thread gives a key a way only if its record is still the present one
 * after its claim (`memory/insertion.ts`). So a thread that stalls after its fence can't advance the tick of
 * an earlier record's cell, and can't finish another conversion than its own.
 */
export class Conversion {
  readonly #words: Words
  readonly #table: Table
  readonly #views: CellViews
  readonly #record: number
  /** A reading before the present one. */
  readonly #placed: Reading

  constructor(words: Words, shape: Shape, table: Table, views: CellViews) {
    this.#words = words
    this.#table = table
    this.#views = views
    this.#record = shape.record
    const { clock, ticks } = views.reading
    this.#placed = new Reading(clock, ticks)
  }

  /** Whether the cell counts by another record, or is being converted. By a plain read. */
  isOther(base: number): boolean {
    return (read(this.#words, base + HI) & ~HASH) !== this.#record
  }

  /**
   * Whether all counts of a cell of another record have expired, at the present reading. A cell that is being
   * converted has not expired.
   */
  hasExpired(base: number): boolean {
    const name = load(this.#words, base + HI)
    if ((name & CONVERTING) !== 0) return false
    const tick = load(this.#words, base + TICK)
    const view = this.ownView(base, name)
    return view === undefined || view.algorithm.isExpired(base, tick, view.reading)
  }

  /**
   * How the cell's own record counts it. The reading is such that all units count that the present window
   * covers, and that the cell still has: the present one, or earlier if the present window is longer, but not
   * before the cell's tick. Undefined if there is no such record, or if `name` is not the cell's name.
   */
  ownView(base: number, name: number): CellView | undefined {
    const view = this.#views.of(name & CELL_RECORD)
    const tick = load(this.#words, base + TICK)
    // The name changes before the tick does. So with this name, it is a tick of this record.
    if (view === undefined || load(this.#words, base + HI) !== name) return undefined
    const { present } = this.#views
    view.reading.set(heldMs(view, tick, present.reading.nowMs, coveredMs(present)))
    return view
  }

  /**
   * Converts the key's cell, if it has one by another record. Returns whether the caller must look the key up
   * again.
   */
  find(lo: number, hi: number): boolean {
    for (const way of this.#table.waysOf(lo, hi)) {
      const base = this.#table.base(way)
      if (!this.#table.isOfKey(way, lo, hi)) continue
      if ((load(this.#words, base + ADM) & STATE) !== LIVE) continue
      if (!this.isOther(base)) return true // another thread has just converted it
      return this.convert(way) || this.#views.refresh()
    }
    return this.#views.refresh() // another thread may have converted it to a later record
  }

  /**
   * Converts the cell of a LIVE way. Does nothing if another thread changes the cell meanwhile: the caller
   * looks again. Returns false if the cell counts by a later record: the caller has to go on with that.
   */
  convert(way: number): boolean {
    const words = this.#words
    const base = this.#table.base(way)
    const name = load(words, base + HI)
    const record = name & CELL_RECORD
    const isConverting = (name & CONVERTING) !== 0
    if (record > this.#record) return false
    if (record === this.#record) {
      if (isConverting) this.#complete(base, name)
      return true
    }
    if (this.#views.isOutdated()) return true // after the reading: see "The reading"
    const v = load(words, base + ADM)
    const tick = load(words, base + TICK)
    if ((v & STATE) !== LIVE || load(words, base + HI) !== name) return true
    const counted = isConverting ? undefined : this.#count(base, name, v, tick)
    const converting = (name & HASH) | CONVERTING | this.#record
    if (compareExchange(words, base + HI, name, converting) === name)
      this.#complete(base, converting, counted)
    return true
  }

  /** Step 1. Undefined if there is no sound record of the cell. */
  #count(base: number, name: number, v: number, tick: number): Counted | undefined {
    const old = this.ownView(base, name)
    if (old === undefined) return undefined
    const { nowMs } = this.#views.reading
    const { estimates } = old.algorithm
    const endMs = estimates.startMs(tick, nowMs) + old.reading.ticks.granuleMs
    const used = estimates.usedInLast(base, old.reading, coveredMs(this.#views.present))
    return { v, tick, used, endMs: endMs <= nowMs ? endMs : undefined }
  }

  /**
   * Steps 3 to 7. `name` has CONVERTING and the present record. Without `counted`, a blocked cell carries
   * MAX_TOTAL.
   */
  #complete(base: number, name: number, counted?: Counted): void {
    const words = this.#words
    const { algorithm, reading } = this.#views.present
    const v = load(words, base + ADM)
    if ((v & STATE) !== LIVE || load(words, base + HI) !== name) return
    if (compareExchange(words, base + ADM, v, (v + ONE_EPOCH) | 0) !== v) return
    algorithm.epochs.count(base)
    const isCounted = v === counted?.v && load(words, base + TICK) === counted.tick
    const isPlaced = isCounted && counted.endMs !== undefined
    if (isPlaced) this.#place(base, algorithm, counted.endMs)
    else {
      reading.take()
      if (this.#views.isOutdated()) return // after the reading: see "The reading"
      algorithm.enter(base, reading)
    }
    const units = Math.min(isCounted ? counted.used : algorithm.mostCarried(v), MAX_TOTAL) // more fits no bucket
    if (load(words, base + HI) !== name) return // another thread has finished
    const carried = units > 0 ? algorithm.carry(base, units, isPlaced ? this.#placed : reading) : undefined
    if (isCounted) algorithm.enter(base, reading)
    const isFinished = compareExchange(words, base + HI, name, name & ~CONVERTING) === name
    if (!isFinished && carried !== undefined) algorithm.takeBack(base, carried)
  }

  /** Advances the cell's tick to a moment before the present reading. The reading stays as it is. */
  #place(base: number, algorithm: Algorithm, endMs: number): void {
    this.#placed.use(this.#views.reading.ticks)
    this.#placed.set(endMs)
    algorithm.enter(base, this.#placed)
  }
}

/** What a cell counted by its old record. */
interface Counted {
  /** The admission word and the tick at that moment. */
  readonly v: number
  readonly tick: number
  readonly used: number
  /** The end of the tick. All these units were charged before. Undefined if it is after the reading. */
  readonly endMs: number | undefined
}

/**
 * The reading by which a cell with this tick, which counts by `view`, still has all units of the last `lastMs`: this
 * one, or an earlier one if its window is shorter than that, but not before its tick.
 */
export function heldMs(
  { algorithm, reading }: CellView,
  tick: number,
  nowMs: number,
  lastMs: number,
): number {
  const fromMs = nowMs - Math.max(0, lastMs - reading.ticks.windowMs)
  return Math.max(fromMs, algorithm.estimates.startMs(tick, nowMs))
}

/** How long ago a unit can have been charged that a window of this record covers. */
function coveredMs({ reading: { ticks } }: CellView): number {
  return ticks.windowMs + ticks.granuleMs
}
