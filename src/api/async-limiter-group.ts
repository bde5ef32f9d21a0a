import type { GroupDecision } from '../core/group-decision.js'
import type { TopOptions } from '../core/refusals.js'
import type { TopKey } from '../core/top-keys.js'
import type { GroupKeys, GroupOptions, GroupStats, GroupWaitOptions } from './limiter-group.js'
import type { AsyncReservation } from './reservation.js'

/**
 * A {@link LimiterGroup} with a member that decides on a pool: its methods return promises.
 *
 * The workers of the pool decide. The calling thread peeks, and gives charges back. While a worker decides,
 * other requests see the charges of the members before it.
 *
 * @example
 * ```ts
 * import { createLimiter, group } from 'millrace'
 *
 * const logins = group({
 *   account: createLimiter({ limit: 5, window: '15m' }),
 *   address: createLimiter({ limit: 20, window: '15m', engine: 'pool' }),
 * })
 * const decision = await logins.check({ account: 'alice', address: '192.0.2.1' })
 * if (!decision.allowed) console.log(`${decision.member}: ${decision.retryAfterSeconds} s`)
 * ```
 */
export interface AsyncLimiterGroup<Name extends string = string> {
  /**
   * Decides and charges, like {@link LimiterGroup.check}.
   * @param keys a key for each member, by its name
   * @param cost units to charge in each member, an integer of 0 or more. Default: 1
   * @param options limits for this call only
   * @returns a promise of the decision
   * @throws {MillraceError} (rejects) the errors of {@link LimiterGroup.check}, `ERR_MILLRACE_OVERLOADED`,
   * `ERR_MILLRACE_NO_THREADS`, and `ERR_MILLRACE_WORKER_LOST`. After the latter only the member of the lost
   * worker may stay charged. All others have taken their charges back
   * @example
   * ```ts
   * const { allowed, member } = await logins.check({ account: 'alice', address: '192.0.2.1' })
   * if (!allowed) console.log(`too many logins of this ${member}`)
   * ```
   */
  check(keys: GroupKeys<Name>, cost?: number, options?: GroupOptions<Name>): Promise<GroupDecision<Name>>

  /**
   * The same as `check`, but it rejects if the request is refused.
   * @param keys a key for each member, by its name
   * @param cost units to charge in each member, an integer of 0 or more. Default: 1
   * @param options limits for this call only
   * @returns a promise of the decision, whose `allowed` is true
   * @throws {MillraceLimited} (rejects) if the request is refused; its `decision` says for how long, and by its
   * `source` whether the store did not answer
   * @throws {MillraceError} (rejects) the same errors as {@link AsyncLimiterGroup.check}
   * @example
   * ```ts
   * await logins.checkOrThrow({ account: 'alice', address: '192.0.2.1' })
   * ```
   */
  checkOrThrow(
    keys: GroupKeys<Name>,
    cost?: number,
    options?: GroupOptions<Name>,
  ): Promise<GroupDecision<Name>>

  /**
   * Returns the decision that `check` would return now, but charges nothing.
   * @param keys a key for each member, by its name
   * @param cost units to decide about, an integer of 0 or more. Default: 1
   * @param options limits for this call only
   * @returns a promise of the decision
   * @throws {MillraceError} (rejects) the errors of {@link LimiterGroup.check}
   * @example
   * ```ts
   * const { member, remaining } = await logins.peek({ account: 'alice', address: '192.0.2.1' })
   * console.log(`${remaining} left of ${member}`)
   * ```
   */
  peek(keys: GroupKeys<Name>, cost?: number, options?: GroupOptions<Name>): Promise<GroupDecision<Name>>

  /**
   * Charges `cost` units, to be settled when the actual cost is known, like {@link LimiterGroup.reserve}.
   * @param keys a key for each member, by its name
   * @param cost units to charge in each member, an integer of 0 or more: the most that the request may use
   * @param options limits for this call only
   * @returns a promise of the reservation
   * @throws {MillraceError} (rejects) the same errors as {@link AsyncLimiterGroup.check}
   * @example
   * ```ts
   * const reservation = await logins.reserve({ account: 'alice', address: '192.0.2.1' }, 1_000)
   * if (reservation.decision.allowed) await reservation.commit(812)
   * ```
   */
  reserve(
    keys: GroupKeys<Name>,
    cost: number,
    options?: GroupOptions<Name>,
  ): Promise<AsyncReservation<GroupDecision<Name>>>

  /**
   * Waits until all members admit the request, like {@link LimiterGroup.wait}.
   * @param keys a key for each member, by its name
   * @param options the cost, limits for this call only, and a signal that ends the wait
   * @returns a promise of the decision, which is always an admission
   * @throws {MillraceError} (rejects) the errors of {@link LimiterGroup.wait} and of
   * {@link AsyncLimiterGroup.check}; or the reason of the signal
   * @example
   * ```ts
   * const signal = AbortSignal.timeout(2_000)
   * await logins.wait({ account: 'alice', address: '192.0.2.1' }, { signal })
   * ```
   */
  wait(keys: GroupKeys<Name>, options?: GroupWaitOptions<Name>): Promise<GroupDecision<Name>>

  /**
   * Gives back exactly the charges of a decision in all members, like {@link LimiterGroup.refund}.
   * @param decision a decision of this group
   * @returns a promise of the most units that any member gave back
   * @throws {MillraceError} (rejects) the errors of {@link LimiterGroup.refund}
   * @example
   * ```ts
   * const decision = await logins.check({ account: 'alice', address: '192.0.2.1' })
   * if (decision.allowed) await logins.refund(decision)
   * ```
   */
  refund(decision: GroupDecision<Name>): Promise<number>

  /**
   * Returns the keys that were refused most. The first call begins to count. Until then a refusal costs nothing more.
   * At most 1,024 keys are counted at the same time, so memory is bounded. A further key takes the place of the one with
   * the least count, and goes on from that count: `error` says by how much its own may be too high. A key that is missing
   * was refused no more often than the least of the 1,024 counts.
   *
   * Counted are the refusals of this group in this thread that are events (`docs/reference/events.md`), of keys that
   * were given as texts. Rows show keys as events do.
   * @param options what to count, and how many keys to return
   * @returns a promise of the keys, the most refused first
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_INVALID_OPTION`
   * @example
   * ```ts
   * for (const { key, count, error } of await logins.top({ by: 'refused' })) console.log(key, count, error)
   * ```
   */
  top(options: TopOptions): Promise<TopKey[]>

  /**
   * Returns what this group has decided. Its members count their own decisions, too: see {@link Limiter.stats}.
   * @returns the counts of this thread
   * @example
   * ```ts
   * console.log((await logins.stats()).own.refused)
   * ```
   */
  stats(): Promise<GroupStats>
}
