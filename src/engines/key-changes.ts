import { type Algorithm, type CellAdjustments, GONE } from '../algorithms/algorithm.js'
import { BlockBound } from '../algorithms/block-bound.js'
import { type InlineDecision, Outcome } from '../core/decision.js'
import type { Reading } from '../core/reading.js'
import type { Arena } from '../memory/arena.js'
import { count } from '../memory/counters.js'
import type { Insertion } from '../memory/insertion.js'
import { ADM, HEADER, HI, LIVE, NAMES_AT, STATE } from '../memory/layout.js'
import { announceChange } from '../memory/limit.js'
import type { Table } from '../memory/table.js'
import { load, read } from '../memory/words.js'

/** One reading of the clock holds for this many ways. */
const WAYS_PER_READING = 64

/**
 * Changes the counts and the blocks of keys, on the calling thread. The arguments have been checked. Every
 * method reads the clock, finds the key's way, and starts over if another key has taken the way meanwhile.
 */
export class KeyChanges {
  readonly #arena: Arena
  readonly #table: Table
  readonly #algorithm: Algorithm
  readonly #insertion: Insertion
  readonly #reading: Reading
  readonly #adjustments: CellAdjustments
  readonly #blockBound: BlockBound

  constructor(arena: Arena, table: Table, algorithm: Algorithm, insertion: Insertion, reading: Reading) {
    this.#arena = arena
    this.#table = table
    this.#algorithm = algorithm
    this.#insertion = insertion
    this.#reading = reading
    this.#adjustments = algorithm.adjustments
    this.#blockBound = new BlockBound(arena.words, table, algorithm)
  }

  /** Gives back the charge of a decision or a part of it, once. Returns how many units. */
  giveBack(decision: InlineDecision, units = decision.cost): number {
    if (decision.outcome !== Outcome.CHARGED) return 0
    this.#reading.take() // may throw, and the decision can then be given back later
    return this.takeBack(decision, units)
  }

  /** The same by the last reading of the clock, for a decision that has a charge: another rule has refused. */
  takeBack(decision: InlineDecision, units = decision.cost): number {
    decision.giveBack()
    return this.takeBackFrom(decision.way, decision.tick, units, decision.stamp)
  }

  /**
   * Gives back a charge of `cost` units or a part of a larger one, by the place and the stamp of the charge.
   * Returns how many units.
   */
  giveBackFrom(way: number, tick: number, cost: number, stamp: number): number {
    this.#reading.take()
    return this.takeBackFrom(way, tick, cost, stamp)
  }

  /** The same by the last reading of the clock. */
  takeBackFrom(way: number, tick: number, cost: number, stamp: number): number {
    // The way may have a new owner; expired charges stay expired.
    this.#algorithm.enter(this.#algorithm.base(way), this.#reading)
    return this.#adjustments.giveBack(way, tick, cost, stamp) ? cost : 0
  }

  /** Takes up to `most` units out of the key's counts, the oldest first. Returns how many. */
  refund(lo: number, hi: number, most: number): number {
    const capped = Math.min(most, Number.MAX_SAFE_INTEGER)
    return this.#changeExisting(lo, hi, 0, (way) => this.#adjustments.refund(way, lo, hi, capped))
  }

  /** Charges `cost` units, at most `COUNT`, also beyond the limit. False: there is no room for the key. */
  penalize(lo: number, hi: number, cost: number): boolean {
    if (cost === 0) return true
    return this.#changeOrInsert(lo, hi, (way) => this.#adjustments.penalize(way, lo, hi, cost))
  }

  /** Charges the rest of a cost of which `cost` has been charged. Returns how much; 0: there is no room. */
  chargeMore(lo: number, hi: number, cost: number, actualCost: number): number {
    const more = actualCost - cost
    return this.penalize(lo, hi, more) ? more : 0
  }

  /** Charges a refusal on the key's way, whose tick is the clock's. False: the way has another key. */
  penalizeWay(way: number, lo: number, hi: number, cost: number): boolean {
    return this.#adjustments.penalize(way, lo, hi, cost) === true
  }

  /** Refuses the key for `ms`, `Infinity` for ever. False: there is no room for the key. */
  block(lo: number, hi: number, ms: number): boolean {
    const set = (way: number) =>
      this.#adjustments.block(way, lo, hi, this.#algorithm.until.wordFor(this.#reading.nowMs, ms))
    if (!this.#changeOrInsert(lo, hi, set, true)) return false
    const ended = this.#blockBound.hold(lo, hi, this.#reading)
    if (ended > 0) count(this.#arena.words, HEADER.BLOCKS_EVICTED, ended)
    return true
  }

  /** Ends the key's block. Returns whether there was one. */
  unblock(lo: number, hi: number): boolean {
    return this.#changeExisting(lo, hi, false, (way) => this.#adjustments.unblock(way, lo, hi, this.#reading))
  }

  /** Forgets the key's counts, and ends its block. */
  clear(lo: number, hi: number): void {
    this.refund(lo, hi, Number.MAX_SAFE_INTEGER)
    this.unblock(lo, hi)
  }

  /**
   * Does for every key what `clear` does, one way after the other, and then wakes the pending calls of all
   * threads. A key that another thread inserts at this moment may keep the counts that it takes over.
   */
  clearAll(): void {
    const { ways } = this.#arena.shape
    for (let way = 0; way < ways; way++) {
      if (way % WAYS_PER_READING === 0) this.#reading.take()
      // Without a name it was never used. Then its cell is not read, as that would touch a new page.
      if (read(this.#arena.words, NAMES_AT + way) !== 0) this.#clearWay(way)
    }
    announceChange(this.#arena.words)
  }

  #clearWay(way: number): void {
    const { words } = this.#arena
    const base = this.#algorithm.base(way)
    for (;;) {
      if ((load(words, base + ADM) & STATE) !== LIVE) return
      const lo = read(words, NAMES_AT + way) // if the way changes hands now, the refund finds it
      const hi = read(words, base + HI)
      this.#algorithm.enter(base, this.#reading)
      if (this.#adjustments.refund(way, lo, hi, Number.MAX_SAFE_INTEGER) === GONE) continue
      if (this.#adjustments.unblock(way, lo, hi, this.#reading) !== GONE) return
    }
  }

  /**
   * Runs `change` on the key's way, whose tick has been moved to the clock's, until it runs while the way is
   * the key's. Returns its result, or `absent` if the key has no way.
   */
  #changeExisting<T>(lo: number, hi: number, absent: T, change: (way: number) => T | typeof GONE): T {
    this.#reading.take()
    for (;;) {
      const way = this.#table.findLive(lo, hi)
      if (way < 0) return absent
      this.#algorithm.enter(this.#algorithm.base(way), this.#reading)
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
    for (;;) {
      const changed = this.#changeExisting<boolean | undefined>(lo, hi, undefined, change)
      if (changed !== undefined) return changed
      if (!this.#insertion.insert(lo, hi, isToBlock)) {
        count(this.#arena.words, HEADER.NO_ROOM, 1)
        return false
      }
    }
  }
}
