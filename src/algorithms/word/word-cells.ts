/**
 * The protocol of an algorithm that keeps all counts of a key in its admission word. `memory/layout.ts` defines
 * the words used here.
 *
 * **The words.** The payload of the admission word is `blocked:1 | meter:21`. Only the algorithm knows what the
 * meter means. TICK is `tick:30 | settled:1`. The meter is understood by this tick. Without the lowest bit, the
 * cell is being emptied: whatever the admission word says was over when this tick began.
 *
 * **A decision**, on one reading of the clock:
 *
 *  1. Load the admission word v. Then read the name, which must be the key's while v says LIVE. (`attempt` reads v by
 *     a plain read that no later read overtakes. If v is old by then, the compare-exchange of step 4 fails.)
 *  2. Read TICK, after v: a tick from before v could be older than an admission that v counts. Bring it up to
 *     the reading (below). If that changes anything, start again.
 *  3. Without room: load the admission word again. If it is still v, refuse. (The tick may have moved between
 *     the two reads of step 1 and 2. Then v has another epoch by now.)
 *  4. With room: CAS(v -> v with the cost). If it fails, start again. A success proves that nothing has changed
 *     since v: each other admission changes the meter, and everything else the epoch. So an admission takes one
 *     compare-exchange, and a refusal none. (The tick may have moved without emptying. A bucket's meter is the
 *     same time by both ticks. A window moves while its meter is 0, and then counts by the later one.)
 *
 * A decision counts at its reading, or if the cell's tick is later, at the start of that tick.
 *
 * **Emptying.** When nothing that the cell counted counts any more, its meter must be emptied before it counts
 * again. Two words change, in this order:
 *
 *     mark     CAS(TICK, t settled -> the new tick, not settled)
 *     empty    CAS(ADM, v -> empty at that tick, epoch + 1)
 *     settle   CAS(TICK -> the same tick, settled)
 *
 * A thread that finds the mark does the other two steps, so a thread that dies in between holds up no one. In the
 * other order, a thread that still has the old tick would take the new meter for one of the old tick's time. The
 * new epoch makes each commit fail that expects the word from before.
 *
 * **A new key** takes over the meter of the way, unless its counts are over. Then it moves the tick itself, while
 * no other thread decides there (`promote`). It does so only while the admission word is still its own: another
 * key may have taken the way from it, and the tick of a cell that counts moves as above.
 *
 * **Epochs have 8 bits.** A thread that stops inside one decision for exactly 256 changes of the epoch, and
 * finds the same meter, can't notice it.
 *
 * `npm run dev -- model --broken` leaves these rules out one at a time, and prints an interleaving that breaks the
 * promise.
 */

import { Reading } from '../../core/reading.js'
import type { Ticks } from '../../core/ticks.js'
import { again } from '../../core/tries.js'
import { ADM, EPOCH, HEADER, LIVE, ONE_EPOCH, type Shape, STATE, TICK } from '../../memory/layout.js'
import { limitIn } from '../../memory/records.js'
import { compareExchange, load, read, readInOrder, store, type Words } from '../../memory/words.js'
import {
  ADMITTED,
  type Algorithm,
  type CellAdjustments,
  type CellEstimates,
  GONE,
  type MostUsed,
  mostIn,
  SUSPECT,
  UNDECIDED,
} from '../algorithm.js'
import { KeyedCells } from '../keyed-cells.js'
import { CellTime, FAR_AHEAD, STANDS_AHEAD } from './cell-time.js'
import { isSettled, METER, marked, SHUT, settled, tickOf, UNCOUNTED, UNKNOWN_UNITS } from './meter.js'
import type { Refunds } from './recent-refunds.js'

/** @see Algorithm */
export abstract class WordCells extends KeyedCells implements Algorithm {
  abstract readonly estimates: CellEstimates
  abstract readonly adjustments: CellAdjustments & {
    carry(base: number, units: number, reading: Reading): void
  }
  readonly hasWholeMs: boolean = false
  readonly blockMask = SHUT
  abstract readonly most: MostUsed
  readonly time: CellTime
  readonly ticks: Ticks

  constructor(words: Words, shape: Shape, originMs: number, ticks: Ticks) {
    super(words, shape, originMs)
    this.ticks = ticks
    this.time = new CellTime(words, shape, originMs)
  }

  /** The meter of a cell in which nothing counts at the start of a tick. */
  protected abstract emptyAt(tick: number): number
  /** Whether nothing counts any more, whatever the meter is, `behind` ticks after the cell's tick. */
  protected abstract isOver(behind: number): boolean
  /** After how many ticks nothing counts any more. */
  abstract ticksToEmpty(v: number, w: number): number
  /**
   * Whether the cell's tick must move on to the reading's although its counts are not over. May change the admission word first; then it returns undefined, and the caller starts again.
   */
  protected abstract mustMove(base: number, v: number, w: number): boolean | undefined
  /** The word `v`, whose tick is settled, with `cost` more by this limit; `v` itself if there is no room. */
  abstract charged(v: number, w: number, cost: number, limit: number, reading: Reading): number
  /** The word with `cost` more even if there is no room, as far as the meter goes. */
  abstract penalized(v: number, w: number, cost: number, limit: number, reading: Reading): number
  /** The word with at least `cost` at the reading, as far as the meter goes: what is there counts towards it. */
  abstract raised(v: number, w: number, cost: number, limit: number, reading: Reading): number
  /** The units that count at the reading, by this limit. */
  abstract unitsAt(v: number, w: number, reading: Reading, limit: number): number
  /** Until `cost` fits by this limit: whole milliseconds after the reading. */
  abstract untilRoom(v: number, w: number, cost: number, limit: number, reading: Reading): number
  /** Until nothing counts. */
  abstract untilOver(v: number, w: number, reading: Reading): number
  /** The word without up to `most` units, and how many units these are. */
  abstract refunded(v: number, w: number, most: number, limit: number, reading: Reading): Refunded | undefined
  /** The word without `cost` units of a charge, or undefined if they do not count any more. */
  abstract givenBack(v: number, w: number, charge: WordCharge, reading: Reading): number | undefined
  /** Whether a decision that is given back gives the cell a new epoch. */
  abstract readonly renewsEpoch: boolean
  /** The ticks, from that of a cell on, in which it is charged before it takes another one. */
  abstract readonly chargeTicks: number
  /** Whether units come back one by one, and not all at the end of the window. */
  abstract readonly runsOff: boolean
  /** The ticks for which a refund matters to an earlier charge. */
  abstract readonly refundTicks: number

  /** The limit of the rule. */
  get presentLimit(): number {
    return limitIn(load(this.words, HEADER.CURRENT))
  }

  /** The ticks from that of `w` to the reading's: below 0 if the cell is ahead. */
  ticksSince(w: number, reading: Reading): number {
    const { modulus } = this.ticks
    const since = this.time.distance(reading.tick, tickOf(w))
    return since > modulus / 2 ? since - modulus : since
  }

  receipt(_stamp: number, adm: number): number {
    return adm
  }

  /** A new reading of the clock. The given one stays as it is. */
  freshReading({ clock }: Reading): Reading {
    const reading = new Reading(clock, this.ticks)
    reading.take()
    return reading
  }

  /** Whether nothing counts in a cell with this word of TICK, whatever its meter is. */
  isAllOver(base: number, w: number, reading: Reading): boolean {
    return !isSettled(w) || this.isOver(this.time.behind(base, tickOf(w), reading))
  }

  /** Whether a decision may use `v` and `w` as they are: `isEntered` would be true. By this alone, nothing is changed. */
  protected isPresent(_v: number, w: number, reading: Reading): boolean {
    return w === settled(reading.tick)
  }

  touch(way: number): number {
    return read(this.words, this.base(way) + ADM)
  }

  attempt(way: number, lo: number, hi: number, cost: number, limit: number, reading: Reading): number {
    const { words } = this
    const base = this.base(way)
    const v = readInOrder(words, base + ADM)
    if ((v & SHUT) !== 0 || !this.isOf(v, way, lo, hi)) return UNDECIDED
    const w = read(words, base + TICK)
    if (!this.isPresent(v, w, reading)) return UNDECIDED
    const next = this.charged(v, w, cost, limit, reading)
    if (next === v) return load(words, base + ADM) === v ? this.full(v, w) : UNDECIDED
    if (compareExchange(words, base + ADM, v, next) !== v) return UNDECIDED
    return this.#admitted(next, w)
  }

  /** What has been charged: ADMITTED or SUSPECT. */
  #admitted(adm: number, w: number): typeof ADMITTED | typeof SUSPECT {
    this.lastAdm = adm
    this.chargedTick = w
    return mostIn(adm, w, this.most) < this.suspectFrom ? ADMITTED : SUSPECT
  }

  decide(way: number, lo: number, hi: number, cost: number, limit: number, reading: Reading): number {
    const { words } = this
    const base = this.base(way)
    for (let tries = 0; ; tries = again(tries)) {
      const v = load(words, base + ADM)
      if (!this.isOf(v, way, lo, hi)) return GONE
      const w = read(words, base + TICK)
      if (!this.isEntered(base, v, w, reading)) continue
      if ((v & SHUT) !== 0) {
        if (this.blockedMs(base, reading.nowMs) > 0) return this.full(v, w)
        this.endBlock(base, v)
        continue
      }
      const next = this.charged(v, w, cost, limit, reading)
      if (next === v) {
        if (load(words, base + ADM) === v) return this.full(v, w)
        continue
      }
      if (compareExchange(words, base + ADM, v, next) !== v) continue
      return this.#admitted(next, w)
    }
  }

  enter(base: number, reading: Reading): void {
    for (let tries = 0; ; tries = again(tries)) {
      const v = load(this.words, base + ADM)
      if (this.isEntered(base, v, read(this.words, base + TICK), reading)) return
    }
  }

  /**
   * Brings a cell up to the reading. Returns true if `v` and `w` may be used, or false after a change: the
   * caller starts again. `v` was loaded before `w`. It is LIVE, or no other thread uses the cell.
   */
  isEntered(base: number, v: number, w: number, reading: Reading): boolean {
    const { words, time } = this
    const tick = tickOf(w)
    if (!isSettled(w)) {
      this.settle(base, v, w)
      return false
    }
    let behind = time.distance(reading.tick, tick)
    if (behind === 0) return true
    let side = time.sideOf(base, behind, reading)
    if (side === FAR_AHEAD) {
      reading.take() // the clock may not have stepped back: this thread may have been stopped for an hour
      behind = time.distance(reading.tick, tick)
      side = time.sideOf(base, behind, reading)
    }
    if (side === STANDS_AHEAD) return true
    if (side === FAR_AHEAD || this.isOver(behind)) {
      time.raiseNewest(reading)
      compareExchange(words, base + TICK, w, marked(reading.tick))
      return false
    }
    const moves = this.mustMove(base, v, w)
    if (moves === false) return true
    if (moves === undefined) return false
    time.raiseNewest(reading)
    compareExchange(words, base + TICK, w, settled(reading.tick))
    return false
  }

  /** Does the last two steps of emptying. */
  settle(base: number, v: number, w: number): void {
    if (!this.empties(base, v, w)) return
    compareExchange(this.words, base + TICK, w, settled(tickOf(w)))
  }

  /** The word `v` with a new epoch, and its meter empty at the start of a tick. A block stays. */
  emptied(v: number, tick: number): number {
    return ((v & ~METER) + ONE_EPOCH) | this.emptyAt(tick)
  }

  /** Empties the meter at the start of the cell's tick. Returns false if `v` has changed. */
  protected empties(base: number, v: number, w: number): boolean {
    return compareExchange(this.words, base + ADM, v, this.emptied(v, tickOf(w))) === v
  }

  isExpired(base: number, w: number, reading: Reading): boolean {
    const behind = this.time.behind(base, tickOf(w), reading)
    if (!isSettled(w)) return behind > 1
    // A granule more: the clocks of other threads may be behind. After the tick: if the word has changed since
    // the caller read it, the claim fails.
    return behind - 1 >= this.ticksToEmpty(load(this.words, base + ADM), w)
  }

  isPast(base: number, w: number, reading: Reading): boolean {
    return this.time.behind(base, tickOf(w), reading) > 0
  }

  begin(base: number, reading: Reading): void {
    this.time.raiseNewest(reading)
    store(this.words, base + TICK, settled(reading.tick))
  }

  isEmpty(v: number, w: number): boolean {
    return !isSettled(w) || this.ticksToEmpty(v, w) === 0
  }

  mostUsed(v: number, w: number, reading: Reading, limit = this.presentLimit): number {
    if ((v & STATE) === LIVE ? !isSettled(w) : (v & UNCOUNTED) !== 0) return 0
    return this.unitsAt(v, w, reading, limit)
  }

  inherited(v: number, isExpired: boolean, isOther: boolean): number {
    if (isExpired || isOther) return UNCOUNTED
    return (v & STATE) === LIVE ? v & METER : v & (METER | UNCOUNTED)
  }

  /** Nothing is taken over: `inherited`. */
  carryOver(): void {}

  promote(base: number, named: number, reading: Reading): boolean {
    const { words, time } = this
    for (let v = named, tries = 0; ; tries = again(tries)) {
      const w = load(words, base + TICK)
      // After the tick: another key may have taken the way, and the tick may be that key's.
      if (load(words, base + ADM) !== v) return false
      const isUncounted = (v & UNCOUNTED) !== 0
      if (isUncounted && isSettled(w)) {
        const behind = time.distance(reading.tick, tickOf(w))
        if (behind === 0 || time.sideOf(base, behind, reading) === STANDS_AHEAD)
          return this.#goLive(base, v, this.emptyAt(tickOf(w)))
        time.raiseNewest(reading)
        compareExchange(words, base + TICK, w, settled(reading.tick))
        continue
      }
      if (!isUncounted && this.isEntered(base, v, w, reading)) return this.#goLive(base, v, v & METER)
      if (isUncounted) this.settle(base, v, w)
      // Either may have emptied the meter, with a new epoch.
      const emptied = this.emptied(v, tickOf(w))
      if (load(words, base + ADM) === emptied) v = emptied
    }
  }

  #goLive(base: number, v: number, meter: number): boolean {
    return compareExchange(this.words, base + ADM, v, (v & EPOCH) | LIVE | meter) === v
  }

  isBlocked(base: number, v: number, nowMs: number): boolean {
    return (v & (STATE | SHUT)) === (LIVE | SHUT) && this.blockedMs(base, nowMs) > 0
  }

  endBlock(base: number, v: number): boolean {
    return compareExchange(this.words, base + ADM, v, ((v & ~SHUT) + ONE_EPOCH) | 0) === v
  }

  onBlock(): void {}

  carry(base: number, units: number, reading: Reading): undefined {
    this.adjustments.carry(base, units, reading)
  }

  carriedPayload(base: number): number {
    return load(this.words, base + ADM) & METER
  }

  /** Nothing counts twice: `raised`. */
  takeBack(): void {}

  mostCarried(): number {
    return UNKNOWN_UNITS
  }
}

/** @see WordCells.refunded */
export interface Refunded {
  readonly next: number
  readonly units: number
}

/** @see WordCells.givenBack */
export interface WordCharge {
  /** The word of the tick at the charge. */
  readonly w: number
  readonly receipt: number
  readonly limit: number
  /** The reading of the decision. */
  readonly at: number
  /** The units to give back. */
  readonly cost: number
  /** The refunds of the cell of late. */
  readonly refunds: Refunds
}
