import type { Forecast } from '../algorithms/forecast.js'
import type { SlidingWindow } from '../algorithms/sliding-window.js'
import { Outcome } from '../core/decision.js'
import type { Reading } from '../core/reading.js'
import type { Arena } from '../memory/arena.js'
import type { Insertion } from '../memory/insertion.js'
import { ADM, CLAIMED, MOST_BLOCKED, STATE } from '../memory/layout.js'
import type { Table } from '../memory/table.js'
import { load } from '../memory/words.js'
import type { NativeSingle } from '../native/single.js'

/** What a decision says of later: units, and whole milliseconds from the decision. */
export interface Foreseen {
  remaining: number
  retryAfterMs: number
  resetMs: number
}

/** What a key may still use, and when: of the key's cell, or of what it would come to in a table that is full. */
export class Outlook {
  readonly #arena: Arena
  readonly #table: Table
  readonly #window: SlidingWindow
  readonly #forecast: Forecast
  readonly #insertion: Insertion
  readonly #reading: Reading
  readonly #single: NativeSingle | undefined
  /** Whether the cell found last is the key's. */
  #isOwn = false
  readonly #foreseen: Foreseen = { remaining: 0, retryAfterMs: 0, resetMs: 0 }

  constructor(
    arena: Arena,
    table: Table,
    window: SlidingWindow,
    forecast: Forecast,
    insertion: Insertion,
    reading: Reading,
    single: NativeSingle | undefined,
  ) {
    this.#arena = arena
    this.#table = table
    this.#window = window
    this.#forecast = forecast
    this.#insertion = insertion
    this.#reading = reading
    this.#single = single
  }

  /** What the decision just made by the reading in hand says of later; `way` and `chargedTick` tell where it was charged. The object is the same every time. */
  foresee(
    lo: number,
    hi: number,
    cost: number,
    limit: number,
    outcome: Outcome,
    way: number,
    chargedTick: number,
  ): Foreseen {
    const reading = this.#reading
    const foreseen = this.#foreseen
    const at = Math.floor(reading.nowMs)
    if (outcome === Outcome.CHARGED) {
      const used = this.#forecast.usedAtCharge(this.#window.base(way), chargedTick, reading)
      foreseen.remaining = Math.max(0, limit - used)
      foreseen.retryAfterMs = 0
      foreseen.resetMs = this.#forecast.untilGone(chargedTick, reading, at) // nothing newer counts
      return foreseen
    }
    foreseen.remaining = this.left(lo, hi, limit)
    foreseen.retryAfterMs = outcome >= Outcome.UNCOUNTED ? 0 : this.retryAfter(lo, hi, cost, limit, at)
    foreseen.resetMs = this.reset(lo, hi, limit, at)
    return foreseen
  }

  /** When the whole limit is back to the key: milliseconds from `at`. */
  reset(lo: number, hi: number, limit: number, at: number): number {
    this.#reading.take()
    const base = this.#cellOf(lo, hi)
    if (base < 0) return this.#arena.onFull === 'allow' ? 0 : this.#untilRoom(lo, hi, limit, limit, at)
    return Math.max(0, this.#forecast.untilEmpty(base, this.#reading, at), this.#untilOpen(base, at))
  }

  /** What of the limit is left to the key now. */
  remaining(lo: number, hi: number, limit: number): number {
    this.#reading.take()
    return this.left(lo, hi, limit)
  }

  /** The same by the reading in hand. */
  left(lo: number, hi: number, limit: number): number {
    const base = this.#cellOf(lo, hi)
    if (base < 0) return this.#arena.onFull === 'allow' ? limit : 0
    if (this.#isOwn && this.isBlocked(base)) return 0
    return Math.max(0, limit - this.#forecast.used(base, this.#reading))
  }

  /** When `cost`, refused at `at`, will be admitted: milliseconds from then. */
  retryAfter(lo: number, hi: number, cost: number, limit: number, at: number): number {
    if (cost > limit) return Number.POSITIVE_INFINITY
    const single = this.#single
    if (single === undefined) this.#reading.take()
    else {
      const ms = single.retryAfter(lo, hi, cost, limit, at)
      if (ms > 0) return ms
    }
    const base = this.#cellOf(lo, hi)
    if (base < 0) return Math.max(1, this.#untilRoom(lo, hi, cost, limit, at))
    const fits = this.#forecast.untilFits(base, cost, limit, this.#reading, at)
    return Math.max(1, fits, this.#untilOpen(base, at))
  }

  /** When the first way of the key's sets may be taken, and `cost` fits beside the counts that come with it. */
  #untilRoom(lo: number, hi: number, cost: number, limit: number, at: number): number {
    const bases = [...this.#table.waysOf(lo, hi)].map((way) => this.#window.base(way))
    let first = Number.POSITIVE_INFINITY
    for (const base of bases) {
      if ((load(this.#arena.words, base + ADM) & STATE) === CLAIMED) continue // perhaps for ever
      const free =
        this.#arena.onFull === 'evict'
          ? this.#forecast.untilAdmitted(base, cost, limit, this.#reading, at)
          : this.#untilFree(base, bases, at)
      first = Math.min(first, free)
    }
    return Math.max(0, Math.ceil(first))
  }

  /** When the counts of one of the key's ways have expired, and its block is over or gives way. */
  #untilFree(base: number, bases: readonly number[], at: number): number {
    const forecast = this.#forecast
    const expired = forecast.untilExpired(base, this.#reading, at)
    const own = forecast.untilUnblocked(base, this.#reading, at)
    if (own <= expired) return expired
    const blocked = bases.filter((other) => forecast.untilUnblocked(other, this.#reading, at) > expired)
    return blocked.length > MOST_BLOCKED ? expired : own
  }

  /** The key's cell now, else the one that it would take over with its counts, else -1. */
  #cellOf(lo: number, hi: number): number {
    const own = this.#table.findLive(lo, hi)
    this.#isOwn = own >= 0
    const way = this.#isOwn ? own : this.#insertion.choose(lo, hi)
    return way < 0 ? way : this.#window.base(way)
  }

  /** When the block of the cell found last ends; 0 where there is none, or it would give way to the key. */
  #untilOpen(base: number, at: number): number {
    return this.#isOwn ? this.#forecast.untilUnblocked(base, this.#reading, at) : 0
  }

  /** Whether a block is on a cell now. */
  isBlocked(base: number): boolean {
    return this.#window.isShut(base, load(this.#arena.words, base + ADM), this.#reading.nowMs)
  }
}
