import type { RemoteRule } from '../remote/remote-rule.js'
import { BIRTH_RANGE_MS, REFUNDS } from '../remote/reply-codes.js'
import type { SavedCount } from './saved-count.js'

/** The end of a block that has none, in milliseconds. */
export const FOREVER_MS = 2 ** 48 - 1
/** The mark of a receipt where nothing was charged. */
export const NOTHING = -1

/** When a call is decided. */
export interface CallTime {
  /** Milliseconds since 1970, of the store or of this process. */
  readonly nowMs: number
  /** By how much the clocks of processes may differ: a charge counts for so much longer. */
  readonly skewMs: number
}

/** What a refund by key has taken out. */
export interface Refunded {
  readonly given: number
  /** How many of the units were charged last, at one time. */
  readonly newest: number
  /** How long ago those were charged, or less. */
  readonly ageMs: number
}

/**
 * The counts of one rule and one key, in a call: read from the value, changed, and written again. A subclass is an
 * algorithm. Its times are ticks: milliseconds, of a log microseconds.
 */
export abstract class Count {
  readonly remote: RemoteRule
  /** Of the call, in units. */
  readonly limit: number
  readonly nowMs: number
  protected readonly ticksPerMs: number
  protected readonly windowTicks: number
  /** By the clock that decides. */
  protected readonly nowTick: number
  /** A clock that is behind the newest charge stands still there. */
  protected readonly tick: number
  protected readonly skewTicks: number
  readonly exists: boolean
  born: number
  untilMs: number
  endMs: number
  /** The latest time of a charge, in ticks. */
  protected newest: number
  protected serial: number
  isChanged = false

  constructor(
    remote: RemoteRule,
    limit: number,
    { nowMs, skewMs }: CallTime,
    saved: SavedCount | undefined,
    ticksPerMs = 1,
  ) {
    this.remote = remote
    this.limit = limit
    this.ticksPerMs = ticksPerMs
    this.windowTicks = remote.windowMs * ticksPerMs
    this.nowMs = Math.floor(nowMs)
    this.nowTick = ticksPerMs === 1 ? this.nowMs : Math.round(nowMs * ticksPerMs)
    this.newest = saved?.newest ?? 0
    this.tick = Math.max(this.nowTick, this.newest)
    this.skewTicks = skewMs * ticksPerMs
    this.exists = saved !== undefined
    this.born = saved?.born ?? this.nowMs
    this.untilMs = saved?.untilMs ?? 0
    this.endMs = saved?.endMs ?? 0
    this.serial = saved?.serial ?? 0
  }

  get isBlocked(): boolean {
    return this.untilMs > this.nowMs
  }

  /** Whether a cost is within the limit. */
  abstract fits(cost: number): boolean
  /** Milliseconds until a cost fits that is at most the limit. */
  abstract untilFitsMs(cost: number): number
  /** Units that fit. */
  abstract get remaining(): number
  /** Units that count. */
  abstract get used(): number
  /** Milliseconds until nothing counts. */
  abstract get emptyMs(): number
  abstract usedInLast(ms: number): number
  /** Charges units as of some time ago. Returns the mark of the receipt, or {@link NOTHING}. */
  abstract charge(cost: number, ageMs?: number): number
  /** Takes out up to `cost` units, the oldest first. */
  abstract refund(cost: number): Refunded
  /** Takes up to `cost` units out of the charge with this mark. Returns how many. */
  abstract giveBack(mark: number, cost: number): number
  protected abstract empty(): void
  abstract get saved(): SavedCount

  /** How long the store must keep the value. */
  get lastsMs(): number {
    return this.untilMs === FOREVER_MS
      ? Number.POSITIVE_INFINITY
      : Math.max(this.endMs, this.untilMs, this.nowMs) - this.nowMs + 1
  }

  /** @param ms -1: for ever */
  block(ms: number): void {
    this.untilMs = ms < 0 ? FOREVER_MS : Math.min(this.nowMs + ms, FOREVER_MS - 1)
    this.isChanged = true
  }

  /** Returns whether it was blocked. */
  unblock(): boolean {
    const was = this.isBlocked
    if (this.exists) this.#endBlock()
    return was
  }

  /** The value stays until its charges would have left: so other processes see the birth that they know. */
  clear(): void {
    if (!this.exists) return
    this.empty()
    this.#endBlock()
    this.countRefund()
  }

  #endBlock(): void {
    if (this.untilMs === FOREVER_MS) this.staysFor(3 * this.remote.windowMs)
    this.untilMs = 0
    this.isChanged = true
  }

  protected countRefund(): void {
    this.isChanged = true
    const refunds = (Math.floor(this.born / BIRTH_RANGE_MS) % REFUNDS) + 1
    this.born = refunds * BIRTH_RANGE_MS + (this.born % BIRTH_RANGE_MS)
  }

  /** Notes a charge, and that the value must stay until it has left. */
  protected charged(endTick: number): void {
    this.isChanged = true
    this.newest = this.tick
    this.endMs = Math.max(this.endMs, Math.ceil(endTick / this.ticksPerMs))
  }

  protected staysFor(ms: number): void {
    this.endMs = Math.max(this.endMs, this.nowMs + ms)
  }

  /** Milliseconds from now to a tick. */
  protected untilMsOf(tick: number): number {
    return Math.ceil((tick - this.nowTick) / this.ticksPerMs)
  }

  protected savedWith(entries: SavedCount['entries']): SavedCount {
    const { born, untilMs, endMs, newest, serial } = this
    return { shape: this.remote.shape, born, untilMs, endMs, newest, serial, entries }
  }
}
