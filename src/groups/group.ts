import { createRequire } from 'node:module'
import type { AsyncLimiter } from '../api/async-limiter.js'
import type { AsyncLimiterGroup } from '../api/async-limiter-group.js'
import type { Limiter } from '../api/limiter.js'
import type { LimiterGroup } from '../api/limiter-group.js'
import { lazily } from '../core/lazily.js'

const require = createRequire(import.meta.url)
const joined = lazily(() => require('./join.js') as typeof import('./join.js'))

/** The members of a group: limiters of any engine, by names of your choice. */
export type GroupMembers = Readonly<Record<string, Limiter | AsyncLimiter>>

/**
 * The type of the group of these members: {@link LimiterGroup} if all decide on the calling thread,
 * {@link AsyncLimiterGroup} if at least one decides on a pool.
 */
export type GroupOf<Members extends GroupMembers> = Members[keyof Members] extends Limiter
  ? LimiterGroup<keyof Members & string>
  : true extends { [Name in keyof Members]: Members[Name] extends AsyncLimiter ? true : never }[keyof Members]
    ? AsyncLimiterGroup<keyof Members & string>
    : LimiterGroup<keyof Members & string> | AsyncLimiterGroup<keyof Members & string>

/**
 * Joins several limiters, so that they decide together, all or nothing. Each member has a key of its own: for
 * a login, the account and the address. The members are charged in the order of the object. Put the member
 * that refuses most first: its refusals charge nothing.
 * @param members the limiters by their names. They may have one rule or several, be attached, or have a file
 * or a pool; or all of them are on Redis, by one client. In a JavaScript object, names that are whole numbers come
 * first
 * @returns a {@link LimiterGroup}; with a limiter of `engine: 'pool'`, or on Redis, an {@link AsyncLimiterGroup}
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION` for an empty object, for a value that is not a
 * limiter, for the same limiter twice, and for limiters on Redis that one call can't decide; `ERR_MILLRACE_CLOSED`
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
export function group<Members extends GroupMembers>(members: Members): GroupOf<Members> {
  return joined().join(members) as unknown as GroupOf<Members>
}
