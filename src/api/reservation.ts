import type { Decision } from '../core/decision.js'
import { MillraceError } from '../core/errors.js'
import { checkActualCost, notReservedError, settledError } from './checks.js'

/**
 * A charge whose actual cost is only known afterwards. `limiter.reserve` returns one. Settle it once: by
 * `commit` when the cost is known, by `cancel` when nothing was used. A reservation that is never settled
 * keeps its charge, which expires like any other.
 */
export interface Reservation<D extends Decision = Decision> {
  /** The decision on the reserved cost. If it is a refusal, nothing is reserved. */
  readonly decision: D
  /**
   * Settles the reservation with the cost that was used. A smaller cost gives back the rest, while the charge
   * still counts. A larger one is charged in addition, also beyond the limit, as by `penalize`. Afterwards
   * `refund(decision)` gives back at most what was not given back here.
   * @param actualCost the units used: an integer of 0 or more, at most 4,194,303 (with the option `unit`, as
   * many times the unit) above the reserved cost. Default: the reserved cost
   * @returns how many units were charged in addition; below 0: how many were given back. 0 if the charge has
   * left the window, or a refund by key or a `clear` may have taken it, or the key has no place any more, or
   * no rule is enforced and each would have refused the reserved cost
   * @throws {MillraceError} `ERR_MILLRACE_SETTLED`, `ERR_MILLRACE_NOT_RESERVED`, `ERR_MILLRACE_INVALID_COST`,
   * `ERR_MILLRACE_INVALID_CLOCK`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * const reservation = limiter.reserve('user:42', 1_000)
   * if (reservation.decision.allowed) reservation.commit(812) // gives back 188
   * ```
   */
  commit(actualCost?: number): number
  /**
   * Settles the reservation with cost 0: gives back the whole charge, while it still counts.
   * @returns how many units were given back
   * @throws {MillraceError} `ERR_MILLRACE_SETTLED`, `ERR_MILLRACE_NOT_RESERVED`,
   * `ERR_MILLRACE_INVALID_CLOCK`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * const reservation = limiter.reserve('user:42', 1_000)
   * if (reservation.decision.allowed) reservation.cancel() // the request failed before it used anything
   * ```
   */
  cancel(): number
}

/** A {@link Reservation} of an {@link AsyncLimiter}: its methods return promises. */
export interface AsyncReservation<D extends Decision = Decision> {
  /** The decision on the reserved cost. If it is a refusal, nothing is reserved. */
  readonly decision: D
  /**
   * Settles the reservation with the cost that was used, like {@link Reservation.commit}. After
   * `ERR_MILLRACE_OVERLOADED` and `ERR_MILLRACE_NO_THREADS`, and after `ERR_MILLRACE_OUTAGE` whose `mayBeCharged` is
   * false, it is not settled, and the call can be repeated.
   * @param actualCost the units used: an integer of 0 or more, at most 4,194,303 (with the option `unit`, as
   * many times the unit) above the reserved cost. Default: the reserved cost
   * @returns a promise of how many units were charged in addition; below 0: how many were given back
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_SETTLED`, `ERR_MILLRACE_NOT_RESERVED`,
   * `ERR_MILLRACE_INVALID_COST`, `ERR_MILLRACE_OVERLOADED`, `ERR_MILLRACE_WORKER_LOST`,
   * `ERR_MILLRACE_NO_THREADS`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * const reservation = await limiter.reserve('user:42', 1_000)
   * if (reservation.decision.allowed) await reservation.commit(812) // gives back 188
   * ```
   */
  commit(actualCost?: number): Promise<number>
  /**
   * Settles the reservation with cost 0, like {@link Reservation.cancel}.
   * @returns a promise of how many units were given back
   * @throws {MillraceError} (rejects) the same errors as {@link AsyncReservation.commit}
   * @example
   * ```ts
   * const reservation = await limiter.reserve('user:42', 1_000)
   * if (reservation.decision.allowed) await reservation.cancel() // the request failed
   * ```
   */
  cancel(): Promise<number>
}

/** The reserved charge, for its limiter. */
export interface Reserved<Change, D extends Decision = Decision> {
  readonly decision: D
  readonly cost: number
  /** Whether `refund(decision)` has given the charge back. */
  isGivenBack(): boolean
  /** The most units that the actual cost may be above the reserved cost. */
  readonly mostMore: number
  /** Changes the charge to `actualCost`. Returns the units charged in addition; below 0: given back. */
  change(actualCost: number): Change
}

/** Lets a charge be settled once. */
class Settlement {
  readonly #reserved: Reserved<unknown>
  #isSettled = false

  constructor(reserved: Reserved<unknown>) {
    this.#reserved = reserved
  }

  /** Settles the charge, and returns the actual cost. */
  begin(actualCost = this.#reserved.cost): number {
    const { decision, cost, mostMore } = this.#reserved
    checkActualCost(actualCost, cost, mostMore)
    if (!decision.allowed) throw notReservedError()
    if (this.#isSettled || this.#reserved.isGivenBack()) throw settledError()
    this.#isSettled = true
    return actualCost
  }

  /** The change failed with this error. Unless it may have been made, the caller can try again. */
  fail(error: unknown): void {
    this.#isSettled = error instanceof MillraceError && error.mayBeCharged === true
  }
}

/** A reservation of a limiter that decides on the calling thread. */
export class InlineReservation<D extends Decision> implements Reservation<D> {
  readonly decision: D
  readonly #settlement: Settlement
  readonly #reserved: Reserved<number, D>

  constructor(reserved: Reserved<number, D>) {
    this.decision = reserved.decision
    this.#settlement = new Settlement(reserved)
    this.#reserved = reserved
  }

  commit(actualCost?: number): number {
    const { cost, change } = this.#reserved
    const actual = this.#settlement.begin(actualCost)
    try {
      return actual === cost ? 0 : change(actual)
    } catch (error) {
      this.#settlement.fail(error)
      throw error
    }
  }

  cancel(): number {
    return 0 - this.commit(0)
  }
}

/** A reservation of a limiter that decides on a pool. */
export class PoolReservation<D extends Decision> implements AsyncReservation<D> {
  readonly decision: D
  readonly #settlement: Settlement
  readonly #reserved: Reserved<Promise<number>, D>

  constructor(reserved: Reserved<Promise<number>, D>) {
    this.decision = reserved.decision
    this.#settlement = new Settlement(reserved)
    this.#reserved = reserved
  }

  async commit(actualCost?: number): Promise<number> {
    const { cost, change } = this.#reserved
    const actual = this.#settlement.begin(actualCost)
    try {
      return actual === cost ? 0 : await change(actual)
    } catch (error) {
      this.#settlement.fail(error)
      throw error
    }
  }

  async cancel(): Promise<number> {
    return 0 - (await this.commit(0))
  }
}
