import type { Estimates } from '../algorithms/estimates.js'
import type { SlidingWindow } from '../algorithms/sliding-window.js'
import { type Decided, type Figures, Outcome } from '../core/decision.js'
import { Reading } from '../core/reading.js'
import type { Arena } from '../memory/arena.js'
import type { Insertion } from '../memory/insertion.js'
import { ADM, BLOCKED, CLAIMED, COUNT, MOST_BLOCKED, STATE } from '../memory/layout.js'
import type { Table } from '../memory/table.js'
import { load } from '../memory/words.js'
import type { NativeSingle } from '../native/single.js'

/**
 * What a key may still use, and when, as of a decision. The decision kept its cell's admission word and tick. While the cell
 * bears both, and the key's name, its buckets are as the decision left them, and figures are summed from them for a window
 * that ends at the decision's reading. Otherwise figures are bounds, from what the decision kept alone. So they are, too, once
 * this thread may have brought the word back (`algorithms/epochs.ts`):
 *
 *     remaining     the limit less the word's total, which errs high
 *     retryAfterMs  until all that was charged up to the tick has left the window, and the block has ended
 *     resetMs       the same
 *
 * A refund by another thread takes units out of a bucket before it changes the admission word: figures that are summed in
 * between have it already.
 */
export class DecisionEstimates {
  readonly #arena: Arena
  readonly #table: Table
  readonly #window: SlidingWindow
  readonly #cellEstimates: Estimates
  readonly #insertion: Insertion
  readonly #reading: Reading
  readonly #single: NativeSingle | undefined
  /** The reading of the decision that is asked about. */
  readonly #then: Reading
  #at = 0
  readonly #found = { remaining: 0, retryAfterMs: 0, resetMs: 0 }
  #isDetached = false

  constructor(
    arena: Arena,
    table: Table,
    window: SlidingWindow,
    estimates: Estimates,
    insertion: Insertion,
    reading: Reading,
    single: NativeSingle | undefined,
  ) {
    this.#arena = arena
    this.#table = table
    this.#window = window
    this.#cellEstimates = estimates
    this.#insertion = insertion
    this.#reading = reading
    this.#single = single
    this.#then = new Reading({ now: () => this.#at }, reading.ticks)
  }

  /** The memory may go: from now on figures are bounds, and nothing here looks at a cell. */
  detach(): void {
    this.#isDetached = true
  }

  /** All figures. The object is the same every time. */
  figuresOf(decided: Decided): Figures {
    const figures = this.#found
    figures.remaining = this.remaining(decided)
    figures.retryAfterMs = decided.outcome >= Outcome.UNCOUNTED ? 0 : this.retryAfter(decided)
    figures.resetMs = this.reset(decided)
    return figures
  }

  /** Units left after the decision. */
  remaining(decided: Decided): number {
    const { limit, adm, outcome, tick } = decided
    if (this.#blockedMs(decided) > 0) return 0
    const then = this.#readingOf(decided)
    const used = this.#exactly(decided, (base) =>
      outcome === Outcome.CHARGED
        ? this.#cellEstimates.usedAtCharge(base, tick, then)
        : this.#cellEstimates.used(base, then),
    )
    return Math.max(0, limit - (used ?? adm & COUNT))
  }

  /** Of a refusal: until its cost would be admitted, at least 1. */
  retryAfter(decided: Decided): number {
    const { cost, limit } = decided
    if (cost > limit) return Number.POSITIVE_INFINITY
    return Math.max(1, this.#blockedMs(decided), cost === 0 ? 0 : this.#untilFits(decided))
  }

  /** Until the whole limit is back. */
  reset(decided: Decided): number {
    const { adm, outcome, tick } = decided
    const blockedMs = this.#blockedMs(decided)
    const then = this.#readingOf(decided)
    const isNewest = outcome === Outcome.CHARGED || outcome === Outcome.GIVEN_BACK // its own charge leaves last
    if (isNewest) return this.#cellEstimates.untilGone(tick, then)
    if ((adm & COUNT) === 0) return 0
    const emptyMs = this.#exactly(decided, (base) => this.#cellEstimates.untilEmpty(base, then))
    return Math.max(blockedMs, emptyMs ?? this.#cellEstimates.untilGone(tick, then))
  }

  /** @see InlineDecision.effectMs */
  effectOf({ tick }: { readonly tick: number }, readingMs: number): number {
    const { ticks } = this.#reading
    const own = Math.floor(ticks.position(readingMs))
    const distance = this.#window.ring.distance(tick, ticks.wrap(own) | 0)
    const ahead = distance > ticks.modulus / 2 ? distance - ticks.modulus : distance
    return ahead === 0 ? readingMs : (own + ahead) * ticks.granuleMs
  }

  /**
   * The figures of a key without a way, by the reading in hand: those of the cell that it would take over with its counts, and
   * whose block would give way. Of a table without room, `retryAfterMs` is when the first of its ways may be taken.
   */
  ofNewKey(lo: number, hi: number, cost: number, limit: number, outcome: Outcome): Figures {
    const isAllowed = outcome >= Outcome.UNCOUNTED
    const way = this.#insertion.choose(lo, hi)
    if (way < 0 && this.#arena.onFull === 'allow') return this.#figures(limit, isAllowed, cost > limit, 0, 0)
    if (way < 0) {
      const until = (units: number) => this.#untilRoom(lo, hi, units, limit)
      return this.#figures(0, isAllowed, cost > limit, cost > limit ? 0 : until(cost), until(limit))
    }
    const base = this.#window.base(way)
    const reading = this.#reading
    const left = Math.max(0, limit - this.#cellEstimates.used(base, reading))
    const retry = isAllowed || cost > limit ? 0 : this.#cellEstimates.untilFits(base, cost, limit, reading)
    return this.#figures(left, isAllowed, cost > limit, retry, this.#cellEstimates.untilEmpty(base, reading))
  }

  #figures(
    remaining: number,
    isAllowed: boolean,
    isNever: boolean,
    retryMs: number,
    resetMs: number,
  ): Figures {
    const retryAfterMs = isNever ? Number.POSITIVE_INFINITY : Math.max(1, retryMs)
    return { remaining, retryAfterMs: isAllowed ? 0 : retryAfterMs, resetMs }
  }

  /** When the first way of the key's sets may be taken, and `cost` fits beside the counts that come with it. */
  #untilRoom(lo: number, hi: number, cost: number, limit: number): number {
    const bases = [...this.#table.waysOf(lo, hi)].map((way) => this.#window.base(way))
    let first = Number.POSITIVE_INFINITY
    for (const base of bases) {
      if ((load(this.#arena.words, base + ADM) & STATE) === CLAIMED) continue // perhaps for ever
      const free =
        this.#arena.onFull === 'evict'
          ? this.#cellEstimates.untilAdmitted(base, cost, limit, this.#reading)
          : this.#untilFree(base, bases)
      first = Math.min(first, free)
    }
    return first
  }

  /** When the counts of one of the key's ways have expired, and its block is over or gives way. */
  #untilFree(base: number, bases: readonly number[]): number {
    const estimates = this.#cellEstimates
    const expired = estimates.untilExpired(base, this.#reading)
    const own = estimates.untilUnblocked(base, this.#reading)
    if (own <= expired) return expired
    const blocked = bases.filter((other) => estimates.untilUnblocked(other, this.#reading) > expired)
    return blocked.length > MOST_BLOCKED ? expired : own
  }

  #untilFits(decided: Decided): number {
    const { cost, limit, tick } = decided
    const ms = this.#canTrustEpoch(decided) ? this.#single?.untilFits(decided) : undefined
    if (ms !== undefined) return ms
    const then = this.#readingOf(decided)
    const exact = this.#exactly(decided, (base) => this.#cellEstimates.untilFits(base, cost, limit, then))
    return exact ?? this.#cellEstimates.untilGone(tick, then)
  }

  /** How long the block by which it was refused was still to last; 0: it was not refused by one. */
  #blockedMs({ adm, until, at }: Decided): number {
    return (adm & COUNT) === BLOCKED && until !== undefined ? this.#window.until.wholeMs(until, at) : 0
  }

  #readingOf({ at }: Decided): Reading {
    this.#at = at
    this.#then.take()
    return this.#then
  }

  /** What `see` finds in the decision's cell; undefined where the cell has changed since, or may be no more. */
  #exactly(decided: Decided, see: (base: number) => number): number | undefined {
    const { way, lo, hi, adm, tick } = decided
    if (!this.#canTrustEpoch(decided) || !this.#window.isUnchanged(way, lo, hi, adm, tick)) return undefined
    const seen = see(this.#window.base(way))
    return this.#window.isStillUnchanged(way, adm, tick) ? seen : undefined
  }

  #canTrustEpoch({ era, way }: Decided): boolean {
    return !this.#isDetached && era.canTrustEpoch(way)
  }
}
