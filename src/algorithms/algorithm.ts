/**
 * The contract of an algorithm, and the words of a cell that it owns.
 *
 * Every cell begins with the same words (`memory/layout.ts`): name with the cell's record, admission word,
 * tick, note, end of the block. In the admission word, the epoch and the state mean the same for all
 * algorithms. The rest, its total, is the *payload*: only the algorithm knows what it means, except for the
 * bits of `blockMask`: all set, they stand for a block. The algorithm owns the words after these.
 *
 * The algorithm decides, gives charges back, refunds, penalizes, blocks, and estimates what happens later. It
 * does not look up keys, insert or evict them, count statistics, or read the clock. The engines do that, and
 * know no algorithm by name.
 *
 * Methods that take a way and a fingerprint (`lo`, `hi`) find out themselves whether the way is still the
 * key's. They return GONE, or false, if another key has taken it. The caller then looks the key up again.
 * `base` is the index of a cell's first word. A cost is 1 to `COUNT` units.
 */
import type { Reading } from '../core/reading.js'
import type { BlockTime } from '../memory/block-time.js'
import type { Cells } from '../memory/insertion.js'
import type { Epochs } from './epochs.js'

/** Results of `attempt` and `decide`. */
export const UNDECIDED = -2
export const GONE = -1 // not the key's way: the caller reads the clock and looks the key up again
export const FULL = 0
export const ADMITTED = 1
/** Admitted, and the admission word has come to `suspectFrom`: the key may be near its limit. */
export const SUSPECT = 2

/** An algorithm on the cells of one record of an arena. It takes the cells of other records for other keys'. `Cells` is the part of it that insertion uses. */
export interface Algorithm extends Cells {
  readonly estimates: CellEstimates
  readonly adjustments: CellAdjustments
  readonly epochs: Epochs
  /** Converts the ends of blocks to and from words. */
  readonly until: BlockTime
  /**
   * Whether all figures of a reading are those of the whole millisecond before it. A decision then keeps only
   * that.
   */
  readonly hasWholeMs: boolean
  /** The bits of an admission word that say together that the key is blocked, until UNTIL. */
  readonly blockMask: number
  /** How an admission word says what the key has used at most. */
  readonly most: MostUsed
  /** From here on, the bits of `most` make an admission a SUSPECT. `NearLimit` sets it for the limit that decides. */
  suspectFrom: number
  /** The cell's tick at the last decision. An admission was charged there. */
  readonly chargedTick: number
  /** A word that the last charge found, and that only the algorithm understands. @see Algorithm.receipt */
  readonly chargedStamp: number
  /** The admission word that the last decision left or read. */
  readonly lastAdm: number
  /** The last UNTIL that was read. If `lastAdm` is blocked, it is the block that refused. */
  readonly lastUntil: number

  base(way: number): number
  /**
   * The receipt of a charge, a word that only the algorithm understands: giving back needs it. `adm` is the
   * admission word that the decision left.
   */
  receipt(stamp: number, adm: number): number
  /** Brings a cell's tick to the reading. */
  enter(base: number, reading: Reading): void
  /** Reads the words of a cell that a decision in `tick` reads first. @see RuleAttempt.touch */
  touch(way: number, tick: number): number
  /**
   * Tries the usual case of `decide` once. Returns ADMITTED, SUSPECT, FULL, or UNDECIDED, which
   * changes nothing and proves nothing. The code is short enough for V8 to inline.
   */
  attempt(way: number, lo: number, hi: number, cost: number, limit: number, reading: Reading): number
  /** Decides on a cost of at most `limit`. Returns ADMITTED, SUSPECT, FULL or GONE. */
  decide(way: number, lo: number, hi: number, cost: number, limit: number, reading: Reading): number
  /** Sets `lastAdm` and `chargedTick` as a refusal does. Returns false if the way is not the key's. */
  observe(way: number, lo: number, hi: number): boolean
  /** Whether the way is as it was when its admission word was `v` and its tick was `e`. */
  isUnchanged(way: number, lo: number, hi: number, v: number, e: number): boolean
  /** The same, after the caller has read the cell. Valid only if `isUnchanged` was true before. */
  isStillUnchanged(way: number, v: number, e: number): boolean
  /**
   * Ends the block of the admission word `v`, and computes the payload from the cell's counts. Returns false
   * if the word has changed.
   */
  endBlock(base: number, v: number, reading: Reading): boolean
  /**
   * Charges what the cell counted by another record, in the cell's tick, at this reading. Returns what
   * `takeBack` has to take out if another thread has carried it, too. Undefined if the carry stays.
   */
  carry(base: number, units: number, reading: Reading): Charged | undefined
  /** Takes the last carry out, before any other charge. */
  takeBack(base: number, carried: Charged): void
  /** The payload of a cell in which just these units have been carried: its total or its meter. */
  carriedPayload(base: number, units: number, reading: Reading): number
  /** The units to carry of a cell whose counts by another record are not known, by its admission word. */
  mostCarried(v: number): number
}

/** What an admission word says of the use of its key, just after an admission: never less than it is. */
export interface MostUsed {
  /** The bits that say it. */
  readonly mask: number
  /** From these bits, so many are to be taken for each tick of the cell; 0 if they count units. */
  readonly perTick: number
  /** With `perTick`: the bits of a key that has used its limit. */
  readonly full: number
}

/** The bits of an admission word and its tick that say what the key has used at most. */
export const mostIn = (adm: number, tick: number, { mask, perTick }: MostUsed): number =>
  (adm - Math.imul(tick >>> 1, perTick)) & mask

/** Units that were charged in tick `e`. */
export interface Charged {
  readonly amount: number
  readonly e: number
}

/** What giving back needs to know of a charge. */
export interface Charge {
  readonly tick: number
  /** @see Algorithm.receipt */
  readonly receipt: number
  /** The limit of the decision, and its reading of the clock. */
  readonly limit: number
  readonly at: number
}

/** Changes of a key's counts other than by admissions. */
export interface CellAdjustments {
  /**
   * Gives back `cost` units of one admission, charged in tick `e` by this limit with this receipt. Returns
   * false if it does not count any more, or if a refund by key may have taken it.
   */
  giveBack(way: number, charge: Charge, cost: number, reading: Reading): boolean
  /** Takes up to `most` units out, the oldest first. Returns how many, or GONE. */
  refund(way: number, lo: number, hi: number, most: number, reading: Reading): number
  /** Charges `cost` units even if there is no room, by the limit of the rule or this one. Returns true, or GONE. */
  penalize(
    way: number,
    lo: number,
    hi: number,
    cost: number,
    reading: Reading,
    limit?: number,
  ): boolean | typeof GONE
  /** The UNTIL with which the next try to block goes on, after GONE. */
  readonly untilOfNextTry: number
  /** Blocks the key until `until`, a word of UNTIL. Returns true, or GONE. */
  block(way: number, lo: number, hi: number, until: number): boolean | typeof GONE
  /** Ends the key's block. Returns whether there was one, or GONE. */
  unblock(way: number, lo: number, hi: number, reading: Reading): boolean | typeof GONE
}

/** @see CellEstimates.foresee */
export interface Foresight {
  /** Units that count against a decision at the reading. */
  readonly used: number
  /** Until at most `room` units count, in milliseconds; 0 if no more do now. */
  readonly fitsMs: number
  /** Until nothing counts any more, in milliseconds. */
  readonly emptyMs: number
}

/**
 * What happens to a cell if no other operation changes it. Nothing here writes. A time is in whole
 * milliseconds after the reading, and exact: one millisecond less is too early.
 */
export interface CellEstimates {
  /** Units that count against a decision by this limit at the reading. */
  used(base: number, reading: Reading, limit: number): number
  /** Units that count just after a charge in `tick`, the cell's tick. */
  usedAtCharge(base: number, tick: number, reading: Reading, limit: number): number
  /** Several figures from one view of the cell. The next call overwrites the object. */
  foresee(base: number, room: number, reading: Reading, limit: number): Foresight
  /** Units charged in the last `lastMs`, at most the window. */
  usedInLast(base: number, reading: Reading, lastMs: number): number
  /** Until `cost`, at most `limit`, would be admitted; 0 if it would be now. */
  untilAdmitted(base: number, cost: number, limit: number, reading: Reading): number
  /** The same if a block is ignored. */
  untilFits(base: number, cost: number, limit: number, reading: Reading): number
  /** Until nothing counts any more, 0 if nothing does. A block is ignored. */
  untilEmpty(base: number, reading: Reading): number
  /** Until nothing counts any more of what a cell with this tick and this admission word counted. */
  untilGone(tick: number, reading: Reading, adm: number): number
  /** Until the key's block ends: 0 if it is not blocked, `Infinity` if the block is for ever. */
  untilUnblocked(base: number, reading: Reading): number
  /** Until a new key may take this way of a full table, if it is not blocked then. */
  untilExpired(base: number, reading: Reading): number
  /** The moment in milliseconds at which a cell's tick began. The reading itself, if it is one of that tick. */
  startMs(tick: number, readingMs: number): number
  /** The moment in milliseconds by which all units of a cell with this tick had been charged. */
  endMs(tick: number, readingMs: number): number
  /** Whether units come back one by one, at a rate, and not each of them a window after its charge, or all at its end. */
  readonly runsOff: boolean
  /** The moment in milliseconds at which a charge in `tick` took effect, of a decision at this reading. */
  effectMs(tick: number, readingMs: number): number
}
