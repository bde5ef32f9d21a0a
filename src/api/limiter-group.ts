import type { FigureCounts } from '../core/decision-counts.js'
import type { GroupDecision } from '../core/group-decision.js'
import type { Signal } from '../core/on-abort.js'
import type { TopOptions } from '../core/refusals.js'
import type { Size } from '../core/sizes.js'
import type { TopKey } from '../core/top-keys.js'
import type { Key } from '../memory/keys.js'
import type { Reservation } from './reservation.js'

/** The keys of one request to a group: one for each member, by its name. */
export type GroupKeys<Name extends string = string> = Readonly<Record<Name, Key>>

/** Options of one decision of a group. */
export interface GroupOptions<Name extends string = string> {
  /**
   * Limits for this call only, by the names of members: `{ account: 20 }`. A member with several rules takes
   * an object with limits by the names of its rules.
   * @default the limits of the rules
   */
  limit?:
    | Readonly<Partial<Record<Name, Size | 'unlimited' | Readonly<Record<string, Size | 'unlimited'>>>>>
    | undefined
}

/** Options of {@link LimiterGroup.wait}. */
export interface GroupWaitOptions<Name extends string = string> extends GroupOptions<Name> {
  /**
   * Units to charge in each member: an integer of 0 or more.
   * @default 1
   */
  cost?: number | undefined
  /**
   * Ends the wait: the promise rejects with the signal's reason, and nothing stays charged.
   * @default a wait without an end
   */
  signal?: Signal | undefined
}

/** The counts of a group in this thread. */
export interface GroupStats {
  /** The decisions of the group: an attempt of `wait` that is refused before it charges is not one. */
  readonly own: FigureCounts & {
    /** By the names of the members: a member has refused what was refused in its name. */
    readonly members: Readonly<Record<string, FigureCounts>>
  }
}

/**
 * Several limiters that decide together, all or nothing. Each member has a key of its own. {@link group}
 * creates a group.
 *
 * A request is admitted if every member admits it. Then each member is charged. If one refuses, none is
 * charged: the members before it take their charges back. Each limiter can still be used on its own. A group
 * has nothing to close: close the limiters.
 *
 * @example
 * ```ts
 * import { createLimiter, group } from 'millrace'
 *
 * const logins = group({
 *   account: createLimiter({ limit: 5, window: '15m' }),
 *   address: createLimiter({ limit: 20, window: '15m' }),
 * })
 * const decision = logins.check({ account: 'alice', address: '192.0.2.1' })
 * if (!decision.allowed) console.log(`${decision.member}: ${decision.retryAfterSeconds} s`)
 * ```
 */
export interface LimiterGroup<Name extends string = string> {
  /**
   * Decides whether the keys may use `cost` units now, each in its member. If so, charges all of them.
   *
   * A cost above the limit of one member is refused with `retryAfterMs: Infinity`, and no member is charged.
   * @param keys a key for each member, by its name
   * @param cost units to charge in each member, an integer of 0 or more. Default: 1
   * @param options limits for this call only
   * @returns the decision. Being over a limit is no error: `allowed` is false
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_INVALID_COST`,
   * `ERR_MILLRACE_INVALID_OPTION`, `ERR_MILLRACE_FOREIGN_HANDLE`, `ERR_MILLRACE_INVALID_CLOCK`,
   * `ERR_MILLRACE_CLOSED`. After an error no member is charged
   * @example
   * ```ts
   * const { allowed, member } = logins.check({ account: 'alice', address: '192.0.2.1' })
   * if (!allowed) console.log(`too many logins of this ${member}`)
   * ```
   */
  check(keys: GroupKeys<Name>, cost?: number, options?: GroupOptions<Name>): GroupDecision<Name>

  /**
   * The same as `check`, for callers who prefer exceptions: it throws if the request is refused.
   * @param keys a key for each member, by its name
   * @param cost units to charge in each member, an integer of 0 or more. Default: 1
   * @param options limits for this call only
   * @returns the decision, whose `allowed` is true
   * @throws {MillraceLimited} if the request is refused; its `decision` says for how long
   * @throws {MillraceError} the same errors as {@link LimiterGroup.check}
   * @example
   * ```ts
   * logins.checkOrThrow({ account: 'alice', address: '192.0.2.1' })
   * ```
   */
  checkOrThrow(keys: GroupKeys<Name>, cost?: number, options?: GroupOptions<Name>): GroupDecision<Name>

  /**
   * Returns the decision that `check` would return now, but charges nothing.
   * @param keys a key for each member, by its name
   * @param cost units to decide about, an integer of 0 or more. Default: 1
   * @param options limits for this call only
   * @returns the decision. Its `remaining` does not subtract `cost`
   * @throws {MillraceError} the same errors as {@link LimiterGroup.check}
   * @example
   * ```ts
   * const { member, remaining } = logins.peek({ account: 'alice', address: '192.0.2.1' })
   * console.log(`${remaining} left of ${member}`)
   * ```
   */
  peek(keys: GroupKeys<Name>, cost?: number, options?: GroupOptions<Name>): GroupDecision<Name>

  /**
   * Charges `cost` units like `check`, for a request whose cost is known only afterwards. `commit` and
   * `cancel` then settle all members.
   * @param keys a key for each member, by its name
   * @param cost units to charge in each member, an integer of 0 or more: the most that the request may use
   * @param options limits for this call only
   * @returns the decision, with `commit` and `cancel`. These return the largest change of any member, in
   * units
   * @throws {MillraceError} the same errors as {@link LimiterGroup.check}
   * @example
   * ```ts
   * const reservation = logins.reserve({ account: 'alice', address: '192.0.2.1' }, 1_000)
   * if (reservation.decision.allowed) reservation.commit(812) // gives back 188 in each member
   * ```
   */
  reserve(keys: GroupKeys<Name>, cost: number, options?: GroupOptions<Name>): Reservation<GroupDecision<Name>>

  /**
   * Waits until all members admit the request. Pending calls of this group with the same keys are served in
   * the order of the calls. Calls with only some keys in common may overtake each other. An attempt that
   * finds no room charges nothing, and does not count in the statistics.
   * @param keys a key for each member, by its name
   * @param options the cost, limits for this call only, and a signal that ends the wait
   * @returns a promise of the decision, which is always an admission
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_NEVER_ADMITTED` for a cost above a limit or a key that is
   * blocked for ever; `ERR_MILLRACE_CLOSED` also when a member is closed meanwhile; the other errors of
   * {@link LimiterGroup.check}; or the reason of the signal
   * @example
   * ```ts
   * const signal = AbortSignal.timeout(2_000)
   * await logins.wait({ account: 'alice', address: '192.0.2.1' }, { signal })
   * ```
   */
  wait(keys: GroupKeys<Name>, options?: GroupWaitOptions<Name>): Promise<GroupDecision<Name>>

  /**
   * Gives back exactly the charges of a decision in all members, while they still count. A second call gives
   * back nothing.
   * @param decision a decision of this group
   * @returns the most units that any member gave back: the charge may have left the window of another
   * @throws {MillraceError} `ERR_MILLRACE_FOREIGN_DECISION`, `ERR_MILLRACE_INVALID_CLOCK`,
   * `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * const decision = logins.check({ account: 'alice', address: '192.0.2.1' })
   * if (decision.allowed) logins.refund(decision) // the password was right
   * ```
   */
  refund(decision: GroupDecision<Name>): number

  /**
   * Returns the keys that were refused most. The first call begins to count. Until then a refusal costs nothing more.
   * At most 1,024 keys are counted at the same time, so memory is bounded. A further key takes the place of the one with
   * the least count, and goes on from that count: `error` says by how much its own may be too high. A key that is missing
   * was refused no more often than the least of the 1,024 counts.
   *
   * Counted are the refusals of this group in this thread that are events (`docs/reference/events.md`), of keys that
   * were given as texts. Rows show keys as events do.
   * @param options what to count, and how many keys to return
   * @returns the keys, the most refused first
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`
   * @example
   * ```ts
   * for (const { key, count, error } of logins.top({ by: 'refused' })) console.log(key, count, error)
   * ```
   */
  top(options: TopOptions): TopKey[]

  /**
   * Returns what this group has decided. Its members count their own decisions, too: see {@link Limiter.stats}.
   * @returns the counts of this thread
   * @example
   * ```ts
   * console.log(logins.stats().own.refused)
   * ```
   */
  stats(): GroupStats
}
