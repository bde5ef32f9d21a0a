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
import { Past, type Remembered } from './past.js'

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
  /** @see endOfRecord */
  endOf(record: number): number
  /** Whether the rule has another record by now. */
  isOutdated(): boolean
  /** Whether only what a window counted when it ended is to count in another one, and not all that is still in a cell. */
  readonly isLedger: boolean
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
 * **What the present window does not cover** is not forgotten: a later, longer one has to count it. The way remembers
 * it until it leaves the window that admitted it (`past.ts`), from before step 7 on. In step 1 a longer window counts
 * what the way remembers, too. Those units may not be in the total, so step 6 raises it.
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
  readonly past: Past
  /** A reading before the present one. */
  readonly #placed: Reading

  constructor(words: Words, shape: Shape, originMs: number, table: Table, views: CellViews) {
    this.#words = words
    this.past = new Past(words, shape, originMs)
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
    if (view === undefined) return true
    if (!view.algorithm.isExpired(base, tick, view.reading)) return false
    return !this.hasPast(base)
  }

  /** Whether longer windows still count units of the cell. */
  hasPast(base: number): boolean {
    return this.past.units(base, this.#views.reading.nowMs) > 0
  }

  /**
   * How the cell's own record counts it. The reading is such that all units count that the present window
   * covers, that the own one counted when it ended, and that the cell still has: the present one, or earlier if the
   * present window is longer, but not before the end of the record, nor before the cell's tick. Undefined if there is no such record, or if `name` is not the cell's name.
   */
  ownView(base: number, name: number, lastMs = coveredMs(this.#views.present)): CellView | undefined {
    const view = this.#views.of(name & CELL_RECORD)
    const tick = load(this.#words, base + TICK)
    // The name changes before the tick does. So with this name, it is a tick of this record.
    if (view === undefined || load(this.#words, base + HI) !== name) return undefined
    const { present } = this.#views
    const { nowMs } = present.reading
    const endMs = this.#views.endOf(name & CELL_RECORD)
    const held = heldMs(view, tick, nowMs, lastMs, endMs)
    view.reading.set(this.#views.isLedger ? Math.max(held, endMs) : held)
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
      if (isConverting) this.#complete(base, name, this.past.word(base))
      return true
    }
    if (this.#views.isOutdated()) return true // after the reading: see "The reading"
    const v = load(words, base + ADM)
    const tick = load(words, base + TICK)
    if ((v & STATE) !== LIVE || load(words, base + HI) !== name) return true
    const past = this.past.word(base)
    const counted = isConverting ? undefined : this.#count(base, name, v, tick)
    const converting = (name & HASH) | CONVERTING | this.#record
    if (compareExchange(words, base + HI, name, converting) === name)
      this.#complete(base, converting, past, counted)
    return true
  }

  /** Step 1. Undefined if there is no sound record of the cell. */
  #count(base: number, name: number, v: number, tick: number): Counted | undefined {
    const old = this.ownView(base, name)
    if (old === undefined) return undefined
    const { nowMs } = this.#views.reading
    const { estimates } = old.algorithm
    const chargedMs = estimates.endMs(tick, nowMs)
    const endMs = estimates.runsOff ? old.reading.nowMs : chargedMs
    const { present } = this.#views
    // Also one that is as long may have begun earlier, with coarser granules or as a fixed window.
    const isLonger = coveredMs(present) > old.reading.ticks.windowMs
    const fromMs = this.#fromMs(name, coveredMs(present))
    const used = this.past.used(base, old, coveredMs(present), isLonger ? fromMs : undefined, nowMs)
    const toRemember = this.#toRemember(base, name, chargedMs, used)
    return { v, tick, used, toRemember, endMs: endMs <= nowMs ? endMs : undefined }
  }

  /**
   * All that the old window counts, those before it, and those between it and the present one. What is carried is part
   * of it, also what none of them counts any more: then the past and the cell have just that in common.
   */
  #toRemember(base: number, name: number, endMs: number, carried: number): Remembered {
    const { nowMs } = this.#views.reading
    const longestMs = this.#longestMs(name & CELL_RECORD)
    const old = this.ownView(base, name, longestMs)
    if (old === undefined) return NOTHING
    const ownMs = old.reading.nowMs + old.algorithm.estimates.untilEmpty(base, old.reading)
    const units = this.past.used(base, old, longestMs, this.#fromMs(name, longestMs), nowMs)
    return {
      units: units > 0 ? Math.max(units, carried) : 0,
      untilMs: Math.max(
        nowMs + this.past.leftMs(base, nowMs),
        coveredMs(old) < longestMs ? endMs + longestMs : ownMs,
      ),
    }
  }

  /** From which moment on units of a cell count that left the window of its record in the last `lastMs`. */
  #fromMs(name: number, lastMs: number): number {
    const { reading, isLedger } = this.#views
    const fromMs = reading.nowMs - lastMs
    return isLedger ? Math.max(fromMs, this.#views.endOf(name & CELL_RECORD)) : fromMs
  }

  /** What the longest window of records from this one to the one before the present one covers. */
  #longestMs(from: number): number {
    let longestMs = 0
    for (let record = from; record < this.#record; record++) {
      const view = this.#views.of(record)
      if (view !== undefined) longestMs = Math.max(longestMs, coveredMs(view))
    }
    return longestMs
  }

  /** What earlier windows counted in what the present one covers. */
  #pastOf(base: number): number {
    const { present, reading } = this.#views
    return this.past.units(base, reading.nowMs, reading.nowMs - coveredMs(present))
  }

  /**
   * Steps 3 to 7. `name` has CONVERTING and the present record. Without `counted`, a blocked cell carries
   * MAX_TOTAL.
   */
  #complete(base: number, name: number, past: number, counted?: Counted): void {
    const words = this.#words
    const { algorithm, reading } = this.#views.present
    const earlier = this.#pastOf(base) // before the fence: see `past.ts`
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
    const most = algorithm.mostCarried(v) + earlier
    const units = Math.min(isCounted ? counted.used : most, MAX_TOTAL) // more fits no bucket
    if (load(words, base + HI) !== name) return // another thread has finished
    const { nowMs } = reading
    const toRemember = isCounted ? counted.toRemember : { units: most, untilMs: nowMs + this.#longestMs(0) }
    const placed = isPlaced ? this.#placed : reading
    const atLeast = load(words, base + TICK)
    const carried = units > 0 ? algorithm.carry(base, units, placed) : undefined
    // By this thread's own carry: another one's may be later, and be taken out.
    const tick = carried?.e ?? atLeast
    const payload = carried?.amount ?? (units > 0 ? algorithm.carriedPayload(base, units, placed) : 0)
    if (isCounted) algorithm.enter(base, reading)
    const isWhole = units > 0 && (carried?.amount ?? units) === units
    const countsMs = isWhole ? algorithm.estimates.untilGone(tick, reading, LIVE | payload) : 0
    const isToRemember = toRemember.untilMs > nowMs + countsMs
    this.past.remember(base, name, past, isToRemember ? toRemember : NOTHING, nowMs)
    const isFinished = compareExchange(words, base + HI, name, name & ~CONVERTING) === name
    if (isFinished) this.past.carried(base, this.#record, payload, tick)
    if (!isFinished && carried !== undefined) algorithm.takeBack(base, carried)
  }

  /** Advances the cell's tick to a moment before the present reading. The reading stays as it is. */
  #place(base: number, algorithm: Algorithm, endMs: number): void {
    this.#placed.use(this.#views.reading.ticks)
    this.#placed.set(endMs)
    algorithm.enter(base, this.#placed)
  }
}

const NOTHING: Remembered = { units: 0, untilMs: 0 }

/** What a cell counted by its old record. */
interface Counted {
  /** The admission word and the tick at that moment. */
  readonly v: number
  readonly tick: number
  readonly used: number
  readonly toRemember: Remembered
  /** The end of the tick. All these units were charged before. Undefined if it is after the reading. */
  readonly endMs: number | undefined
}

/**
 * The reading by which a cell with this tick, which counts by `view`, still has all units of the last `lastMs`: this
 * one, or an earlier one if its window is shorter than that, but not before its tick. A bucket is read after its last
 * charge, or it would have more than was charged, and before the moment `endMs` from which on another window counts, as
 * it runs off at the rate of that.
 */
export function heldMs(
  { algorithm, reading }: CellView,
  tick: number,
  nowMs: number,
  lastMs: number,
  endMs = nowMs,
): number {
  const { estimates } = algorithm
  const fromMs = nowMs - Math.max(0, lastMs - reading.ticks.windowMs)
  return estimates.runsOff
    ? Math.min(endMs, Math.max(fromMs, estimates.endMs(tick, nowMs)))
    : Math.max(fromMs, estimates.startMs(tick, nowMs))
}

/** How long ago a unit can have been charged that a window of this record covers. */
function coveredMs({ reading: { ticks } }: CellView): number {
  return ticks.windowMs + ticks.granuleMs
}
