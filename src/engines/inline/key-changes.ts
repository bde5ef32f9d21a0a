import { type CellAdjustments, type Charge, GONE } from '../../algorithms/algorithm.js'
import { type InlineDecision, Outcome } from '../../core/inline-decision.js'
import { again } from '../../core/tries.js'
import { count } from '../../memory/counters.js'
import { ADM, CONVERTING, HASH, HEADER, HI, LIVE, NAMES_AT, STATE } from '../../memory/layout.js'
import { announceChange } from '../../memory/limit.js'
import { load, read, type Words } from '../../memory/words.js'
import { unlessDamaged } from '../damage.js'
import type { Views } from './views.js'

/** One reading of the clock holds for this many ways. */
const WAYS_PER_READING = 64

/**
 * Changes the counts and the blocks of keys, on the calling thread. The arguments have been checked. Every
 * method reads the clock, finds the key's way, and starts over if another key has taken the way meanwhile,
 * or if the cell has changed its record.
 */
export class KeyChanges {
  readonly #views: Views
  readonly #words: Words

  constructor(views: Views) {
    this.#views = views
    this.#words = views.present.arena.words
  }

  /** Gives back the charge of a decision or a part of it, once. Returns how many units. */
  giveBack(decision: InlineDecision, units = decision.cost): number {
    if (decision.outcome !== Outcome.CHARGED) return 0
    this.#views.reading.take() // may throw, and the decision can then be given back later
    return this.takeBack(decision, units)
  }

  /** Gives back a charge by the last reading of the clock: another rule has refused. */
  takeBack(decision: InlineDecision, units = decision.cost): number {
    decision.giveBack()
    return this.takeBackFrom(decision.way, decision, units)
  }

  /**
   * Gives back a charge of `cost` units or a part of a larger one. Returns how many units.
   */
  giveBackFrom(way: number, charge: Charge, cost: number): number {
    this.#views.reading.take()
    return this.takeBackFrom(way, charge, cost)
  }

  /**
   * Gives back a charge by the last reading of the clock. The way may have a new owner; expired charges stay expired. A
   * cell of another record gives back by that record. A charge of an earlier record than the cell's is in no
   * bucket that counts: nothing is given back.
   */
  takeBackFrom(way: number, charge: Charge, cost: number): number {
    this.#views.refresh()
    const { present } = this.#views
    const base = present.algorithm.base(way)
    const name = load(this.#words, base + HI)
    const isOwn = (name & ~HASH) === present.arena.shape.record
    const view = isOwn ? present : present.conversion?.ownView(base, name)
    if (view === undefined || (name & CONVERTING) !== 0) return 0
    const { adjustments } = view.algorithm
    return unlessDamaged(this.#words, 0, () =>
      adjustments.giveBack(way, charge, cost, view.reading) ? cost : 0,
    )
  }

  /** Takes up to `most` units out of the key's counts, the oldest first. Returns how many. */
  refund(lo: number, hi: number, most: number): number {
    const capped = Math.min(most, Number.MAX_SAFE_INTEGER)
    const refund = (way: number) => this.#adjustments.refund(way, lo, hi, capped, this.#views.reading)
    return unlessDamaged(this.#words, 0, () => this.#changeExisting(lo, hi, 0, refund))
  }

  /** Charges `cost` units, at most `COUNT`, also beyond the limit. False: there is no room for the key. */
  penalize(lo: number, hi: number, cost: number): boolean {
    if (cost === 0) return true
    const penalize = (way: number) => this.#adjustments.penalize(way, lo, hi, cost, this.#views.reading)
    return unlessDamaged(this.#words, false, () => this.#changeOrInsert(lo, hi, penalize))
  }

  /**
   * Charges the rest of a cost of which `cost` has been charged, unless it was shadowed. Returns how much; 0:
   * none, or there is no room.
   */
  chargeMore(lo: number, hi: number, cost: number, actualCost: number, shadowed: number): number {
    const more = actualCost - cost
    return shadowed === 0 && this.penalize(lo, hi, more) ? more : 0
  }

  /**
   * Charges a refusal on the key's way, whose tick is the clock's: what an admission by this limit would charge. False:
   * the way has another key.
   */
  penalizeWay(way: number, lo: number, hi: number, cost: number, limit: number): boolean {
    const penalize = () => this.#adjustments.penalize(way, lo, hi, cost, this.#views.reading, limit) === true
    return unlessDamaged(this.#words, false, penalize)
  }

  get #adjustments(): CellAdjustments {
    return this.#views.present.algorithm.adjustments
  }

  /** Refuses the key for `ms`, `Infinity` for ever. False: there is no room for the key. */
  block(lo: number, hi: number, ms: number): boolean {
    return unlessDamaged(this.#words, false, () => this.#block(lo, hi, ms))
  }

  #block(lo: number, hi: number, ms: number): boolean {
    let until: number | undefined
    const set = (way: number) => {
      const { algorithm, reading } = this.#views.present
      const { adjustments } = algorithm
      const changed = adjustments.block(way, lo, hi, until ?? algorithm.until.wordFor(reading.nowMs, ms))
      until = adjustments.untilOfNextTry
      return changed
    }
    if (!this.#changeOrInsert(lo, hi, set, true)) return false
    let ended = 0
    for (let tries = 0, isOutdated = true; isOutdated; tries = again(tries)) {
      const { blockBound, reading } = this.#views
      ended += blockBound.hold(lo, hi, reading)
      isOutdated = this.#views.refresh()
    }
    if (ended > 0) count(this.#words, HEADER.BLOCKS_EVICTED, ended)
    return true
  }

  /** Ends the key's block. Returns whether there was one. */
  unblock(lo: number, hi: number): boolean {
    const unblock = (way: number) => this.#adjustments.unblock(way, lo, hi, this.#views.reading)
    return unlessDamaged(this.#words, false, () => this.#changeExisting(lo, hi, false, unblock))
  }

  /** Forgets the key's counts, and ends its block. */
  clear(lo: number, hi: number): void {
    this.refund(lo, hi, Number.MAX_SAFE_INTEGER)
    unlessDamaged(this.#words, false, () =>
      this.#changeExisting(lo, hi, false, (way) => this.#forgetPast(way, lo, hi)),
    )
    this.unblock(lo, hi)
  }

  /** Forgets what earlier windows count. PAST is read first: another key's has another word. */
  #forgetPast(way: number, lo: number, hi: number): true | typeof GONE {
    const { algorithm, conversion, table } = this.#views.present
    if (conversion === undefined) return true
    const base = algorithm.base(way)
    const past = conversion.past.word(base)
    if (!table.isLive(way, lo, hi)) return GONE
    conversion.past.clear(base, past)
    return true
  }

  /**
   * Does for every key what `clear` does, one way after the other, and then wakes the pending calls of all
   * threads. A key that another thread inserts at this moment may keep the counts that it takes over.
   */
  clearAll(): void {
    const words = this.#words
    const { ways } = this.#views.present.arena.shape
    for (let way = 0; way < ways; way++) {
      if (way % WAYS_PER_READING === 0) this.#views.reading.take()
      // Without a name it was never used. Then its cell is not read, as that would touch a new page.
      if (read(words, NAMES_AT + way) !== 0) unlessDamaged(this.#words, undefined, () => this.#clearWay(way))
    }
    announceChange(words)
  }

  #clearWay(way: number): void {
    const words = this.#words
    for (let tries = 0; ; tries = again(tries)) {
      this.#views.refresh()
      const { algorithm, conversion, reading } = this.#views.present
      const base = algorithm.base(way)
      if ((load(words, base + ADM) & STATE) !== LIVE) return
      const lo = read(words, NAMES_AT + way) // if the way changes hands now, the refund finds it
      const hi = read(words, base + HI) & HASH
      if (conversion?.isOther(base)) {
        // By this record nothing may be done on a cell of another one.
        if (conversion.convert(way) || this.#views.refresh()) continue
        return
      }
      if (algorithm.adjustments.refund(way, lo, hi, Number.MAX_SAFE_INTEGER, reading) === GONE) continue
      if (this.#forgetPast(way, lo, hi) === GONE) continue
      if (algorithm.adjustments.unblock(way, lo, hi, reading) !== GONE) return
    }
  }

  /**
   * Runs `change` on the key's way until it runs while the way is
   * the key's. Returns its result, or `absent` if the key has no way.
   */
  #changeExisting<T>(lo: number, hi: number, absent: T, change: (way: number) => T | typeof GONE): T {
    this.#views.reading.take()
    for (let tries = 0; ; tries = again(tries)) {
      const way = this.#views.findLive(lo, hi)
      if (way < 0) return absent
      const changed = change(way)
      if (changed !== GONE) return changed
    }
  }

  /** The same, but inserts a new key. False: there is no room for it. */
  #changeOrInsert(
    lo: number,
    hi: number,
    change: (way: number) => boolean | typeof GONE,
    isToBlock = false,
  ): boolean {
    for (let tries = 0; ; tries = again(tries)) {
      const changed = this.#changeExisting<boolean | undefined>(lo, hi, undefined, change)
      if (changed !== undefined) return changed
      if (!this.#views.present.insertion.insert(lo, hi, isToBlock)) {
        count(this.#words, HEADER.NO_ROOM, 1)
        return false
      }
    }
  }
}
