import type { Algorithm, CellEstimates } from '../../algorithms/algorithm.js'
import type { Figures } from '../../core/decision.js'
import { type Decided, type InlineDecision, isRefusal, Outcome } from '../../core/inline-decision.js'
import { Reading } from '../../core/reading.js'
import type { Insertion } from '../../memory/insertion.js'
import { ADM, CLAIMED, MOST_BLOCKED, STATE } from '../../memory/layout.js'
import type { Arena } from '../../memory/records.js'
import type { Table } from '../../memory/table.js'
import { load } from '../../memory/words.js'
import type { NativeSingle } from '../../native/single.js'
import { unlessDamaged } from '../damage.js'

/**
 * The figures of a decision: `remaining`, `retryAfterMs` and `resetMs`, as of the decision. A decision keeps
 * the admission word and the tick of its cell. While the cell has the same word, tick and key, its buckets
 * are unchanged. The figures are then exact: sums of the buckets, for a window that ends at the decision's
 * reading. Otherwise the figures are bounds, from the kept values alone. They are also bounds once this
 * thread may have restored the word (`algorithms/epochs.ts`), and once the memory may be unmapped:
 *
 *     remaining     the limit minus the word's total, which errs high
 *     retryAfterMs  until all charges up to the tick have left the window, and the block has ended
 *     resetMs       the same
 *
 * Figures that are computed with the decision (`giveFigures`) need no proof but that the word and the tick
 * are the same after the sums.
 *
 * A refund by another thread takes units out of a bucket before it changes the admission word. A sum in
 * between already has the refund.
 */
export class DecisionEstimates {
  readonly #arena: Arena
  readonly #table: Table
  readonly #algorithm: Algorithm
  readonly #cellEstimates: CellEstimates
  readonly #insertion: Insertion
  readonly #reading: Reading
  readonly #single: NativeSingle | undefined
  /** The reading of the decision whose figures are computed. */
  readonly #decisionReading: Reading
  #at = 0
  readonly #figuresOfLast = { remaining: 0, retryAfterMs: 0, resetMs: 0 }
  readonly #memory: { readonly isReleased: boolean }
  /** Whether the last decision gave up, as the memory is damaged. `ofNewKey`, which follows, has no more to go by. */
  hasGivenUp = false

  constructor(
    arena: Arena,
    table: Table,
    algorithm: Algorithm,
    insertion: Insertion,
    reading: Reading,
    single: NativeSingle | undefined,
    memory: { readonly isReleased: boolean },
  ) {
    this.#arena = arena
    this.#table = table
    this.#algorithm = algorithm
    this.#cellEstimates = algorithm.estimates
    this.#insertion = insertion
    this.#reading = reading
    this.#single = single
    this.#memory = memory
    this.#decisionReading = new Reading({ now: () => this.#at }, reading.ticks)
  }

  /**
   * All figures of a decision that was just made, in an object that the next call overwrites. `retryAfterMs`
   * of an admission that was not enforced is as it would have been.
   */
  figuresOf(decided: Decided): Figures {
    if (!this.#isShut(decided.adm)) return this.#figuresAtOnce(decided)
    const figures = this.#figuresOfLast
    figures.remaining = this.remaining(decided)
    figures.retryAfterMs = isRefusal(decided.outcome) ? this.retryAfter(decided) : 0
    figures.resetMs = this.reset(decided)
    return figures
  }

  /** The units left after the decision. */
  remaining(decided: Decided): number {
    const { limit, adm, outcome, tick } = decided
    if (this.#blockedMs(decided) > 0) return 0
    const then = this.#readingOf(decided)
    const used = this.#exactly(decided, (base) =>
      outcome === Outcome.CHARGED
        ? this.#cellEstimates.usedAtCharge(base, tick, then, limit)
        : this.#cellEstimates.used(base, then, limit),
    )
    return Math.max(0, limit - (used ?? this.#algorithm.mostUsed(adm, tick, then, limit)))
  }

  /** Milliseconds until the cost of a refusal would be admitted, at least 1. */
  retryAfter(decided: Decided): number {
    const { cost, limit } = decided
    if (cost > limit) return Number.POSITIVE_INFINITY
    return Math.max(1, this.#blockedMs(decided), cost === 0 ? 0 : this.#untilFits(decided))
  }

  /** Milliseconds until the key has its whole limit again. */
  reset(decided: Decided): number {
    const { adm, outcome, tick } = decided
    const blockedMs = this.#blockedMs(decided)
    const then = this.#readingOf(decided)
    // The charge of the decision itself leaves the window last.
    const isNewest = outcome === Outcome.CHARGED || outcome === Outcome.GIVEN_BACK
    if (isNewest) return this.#cellEstimates.untilGone(tick, then, adm)
    if (this.#algorithm.mostUsed(adm, tick, then) === 0) return blockedMs
    const emptyMs = this.#exactly(decided, (base) => this.#cellEstimates.untilEmpty(base, then))
    return Math.max(blockedMs, emptyMs ?? this.#cellEstimates.untilGone(tick, then, adm))
  }

  /** Computes the figures of a decision that was just made, and keeps them in it. */
  giveFigures(made: InlineDecision): void {
    if (made.way < 0 || this.#isShut(made.adm)) return // it has them, or what they come from
    const { remaining, retryAfterMs, resetMs } = this.#figuresAtOnce(made)
    made.show(remaining, retryAfterMs, resetMs)
  }

  #figuresAtOnce(decided: Decided): Figures {
    return (
      unlessDamaged(this.#arena.words, undefined, () => this.#exactFigures(decided)) ??
      this.#unknownFigures(decided)
    )
  }

  /** Bounds of figures that can't be computed, as the memory is damaged. */
  #unknownFigures({ outcome, cost, limit }: Pick<Decided, 'outcome' | 'cost' | 'limit'>): Figures {
    const { windowMs } = this.#arena.shape
    return this.#figures(0, !isRefusal(outcome), cost > limit, windowMs, windowMs)
  }

  #exactFigures(decided: Decided): Figures {
    const { way, adm, tick, limit, cost, outcome } = decided
    const algorithm = this.#algorithm
    const estimates = this.#cellEstimates
    const then = this.#readingOf(decided)
    const base = algorithm.base(way)
    if (outcome === Outcome.CHARGED) {
      const sum = estimates.usedAtCharge(base, tick, then, limit)
      const isSame = algorithm.isStillUnchanged(way, adm, tick)
      const used = isSame ? sum : algorithm.mostUsed(adm, tick, then, limit)
      return this.#figures(Math.max(0, limit - used), true, false, 0, estimates.untilGone(tick, then, adm))
    }
    const isNever = cost > limit
    let { used, fitsMs, emptyMs } = estimates.foresee(base, isNever ? limit : limit - cost, then, limit)
    if (!algorithm.isStillUnchanged(way, adm, tick)) {
      used = algorithm.mostUsed(adm, tick, then, limit)
      emptyMs = used === 0 ? 0 : estimates.untilGone(tick, then, adm)
      fitsMs = emptyMs
    }
    return this.#figures(Math.max(0, limit - used), !isRefusal(outcome), isNever, fitsMs, emptyMs)
  }

  /** @see InlineDecision.effectMs */
  effectOf({ tick }: { readonly tick: number }, readingMs: number): number {
    return this.#cellEstimates.effectMs(tick, readingMs)
  }

  /** @see Algorithm.receipt */
  receiptOf({ stamp, adm }: InlineDecision): number {
    return this.#algorithm.receipt(stamp, adm)
  }

  /**
   * The figures of a key without a way, by the present reading. They are those of the cell that an insertion
   * would take over with its counts, and whose block it would end. If the table has no room, `retryAfterMs`
   * is the time until the first way is free.
   */
  ofNewKey(lo: number, hi: number, cost: number, limit: number, outcome: Outcome): Figures {
    const hasGivenUp = this.hasGivenUp
    this.hasGivenUp = false
    if (hasGivenUp) return this.#unknownFigures({ outcome, cost, limit })
    const exact = () => this.#exactOfNewKey(lo, hi, cost, limit, outcome)
    return (
      unlessDamaged(this.#arena.words, undefined, exact) ?? this.#unknownFigures({ outcome, cost, limit })
    )
  }

  #exactOfNewKey(lo: number, hi: number, cost: number, limit: number, outcome: Outcome): Figures {
    const isAllowed = !isRefusal(outcome)
    const way = this.#insertion.choose(lo, hi)
    if (way < 0 && this.#arena.onFull === 'allow') return this.#figures(limit, isAllowed, cost > limit, 0, 0)
    if (way < 0) {
      const until = (units: number) => this.#untilRoom(lo, hi, units, limit)
      return this.#figures(0, isAllowed, cost > limit, cost > limit ? 0 : until(cost), until(limit))
    }
    const base = this.#algorithm.base(way)
    const reading = this.#reading
    const left = Math.max(0, limit - this.#cellEstimates.used(base, reading, limit))
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
    const figures = this.#figuresOfLast
    figures.remaining = remaining
    const retryAfterMs = isNever ? Number.POSITIVE_INFINITY : Math.max(1, retryMs)
    figures.retryAfterMs = isAllowed ? 0 : retryAfterMs
    figures.resetMs = resetMs
    return figures
  }

  /**
   * Milliseconds until an insertion can take a way of the key's sets, and `cost` fits with the counts there.
   */
  #untilRoom(lo: number, hi: number, cost: number, limit: number): number {
    const bases = [...this.#table.waysOf(lo, hi)].map((way) => this.#algorithm.base(way))
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

  /** Milliseconds until the counts of a way have expired, and its block has ended or can be evicted. */
  #untilFree(base: number, bases: readonly number[]): number {
    const estimates = this.#cellEstimates
    const expired = estimates.untilExpired(base, this.#reading)
    const own = estimates.untilUnblocked(base, this.#reading)
    if (own <= expired) return expired
    const blocked = bases.filter((other) => estimates.untilUnblocked(other, this.#reading) > expired)
    return blocked.length > MOST_BLOCKED ? expired : own
  }

  #untilFits(decided: Decided): number {
    const { cost, limit, tick, adm } = decided
    const ms = this.#canTrustEpoch(decided) ? this.#single?.untilFits(decided) : undefined
    if (ms !== undefined) return ms
    const then = this.#readingOf(decided)
    const exact = this.#exactly(decided, (base) => this.#cellEstimates.untilFits(base, cost, limit, then))
    return exact ?? this.#cellEstimates.untilGone(tick, then, adm)
  }

  /** Whether a block was in force at a refusal. The word says so until the next charge after its end. */
  isBlocked(decided: Decided): boolean {
    return this.#blockedMs(decided) > 0
  }

  /**
   * Milliseconds from the decision to the end of the block that refused it; 0 if no block did. A key without a way has no
   * block: the words of its decision are those of the key before it.
   */
  #blockedMs({ way, adm, until, at }: Decided): number {
    if (way < 0 || !this.#isShut(adm) || until === undefined) return 0
    return this.#algorithm.until.wholeMs(until, at)
  }

  #isShut(adm: number): boolean {
    const { blockMask } = this.#algorithm
    return (adm & blockMask) === blockMask
  }

  #readingOf({ at }: Decided): Reading {
    this.#at = at
    this.#decisionReading.take()
    return this.#decisionReading
  }

  /** The result of `read` on the decision's cell; undefined if the cell may have changed, or be unmapped. */
  #exactly(decided: Decided, read: (base: number) => number): number | undefined {
    const { way, lo, hi, adm, tick } = decided
    if (!this.#canTrustEpoch(decided) || !this.#algorithm.isUnchanged(way, lo, hi, adm, tick))
      return undefined
    const figure = unlessDamaged(this.#arena.words, undefined, () => read(this.#algorithm.base(way)))
    return this.#algorithm.isStillUnchanged(way, adm, tick) ? figure : undefined
  }

  #canTrustEpoch({ era, way }: Decided): boolean {
    return !this.#memory.isReleased && era.canTrustEpoch(way)
  }
}

/**
 * From this fraction of a millisecond on, a decision keeps its exact reading. Doubles are rounded, so adding
 * milliseconds to such a reading may give the next whole millisecond. 2^-10 would do: with 2^-7 V8 has met this way
 * before it optimizes the first decisions, and need not optimize them again.
 */
const NEARLY_WHOLE = 1 - 2 ** -7

/** Whether a decision that keeps the whole millisecond before this reading must keep the reading, too. */
export const isNearlyWhole = (nowMs: number): boolean => nowMs - Math.floor(nowMs) > NEARLY_WHOLE

/** Whether a decision at `nowMs` that keeps the reading `at` must keep details, too. */
export const needsDetails = (at: number, nowMs: number, adm: number, blockMask: number): boolean =>
  (adm & blockMask) === blockMask || nowMs - at > NEARLY_WHOLE

/**
 * Keeps the exact reading if it is needed, and the end of the block that refused: the word may have changed
 * when a figure is read.
 */
export function keepDetails(
  made: InlineDecision,
  at: number,
  nowMs: number,
  until: number,
  blockMask: number,
): void {
  const isBlocked = isRefusal(made.outcome) && (made.adm & blockMask) === blockMask
  if (isBlocked) made.keep({ until, at: nowMs })
  else if (nowMs - at > NEARLY_WHOLE) made.keep({ at: nowMs })
}
