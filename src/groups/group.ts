import type { AsyncLimiter } from '../api/async-limiter.js'
import type { AsyncLimiterGroup } from '../api/async-limiter-group.js'
import type { Limiter } from '../api/limiter.js'
import type { LimiterGroup } from '../api/limiter-group.js'
import { invalid } from '../core/errors.js'
import { AsyncFacade } from '../limiters/async-facade.js'
import { type GroupMember, InlineMember } from '../limiters/group-member.js'
import { InlineLimiter } from '../limiters/inline-limiter.js'
import type { PoolLimiter } from '../limiters/pool-limiter.js'
import { AsyncGroup } from './async-group.js'
import { InlineGroup } from './inline-group.js'
import { isJoining, JOIN, type Joining } from './joining.js'

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
  const entries = entriesOf(members)
  if (entries.some(([, limiter]) => isJoining(limiter)))
    return joinElsewhere(entries) as unknown as GroupOf<Members>
  const own = membersOf(entries)
  const isInline = own.every((member) => member instanceof InlineMember)
  return (isInline ? new InlineGroup(own) : new AsyncGroup(own)) as unknown as GroupOf<Members>
}

type Entries = readonly (readonly [name: string, limiter: unknown])[]

/** The members by their names, each once. @throws MillraceError */
function entriesOf(members: unknown): Entries {
  const given: unknown = members
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw invalid('members', given, 'an object with limiters by their names')
  }
  const entries = Object.entries(given) as [name: string, limiter: unknown][]
  if (entries.length === 0) throw invalid('members', given, 'an object with at least one limiter')
  return entries
}

function membersOf(entries: Entries): GroupMember[] {
  const names = new Map<unknown, string>()
  return entries.map(([name, limiter]) => {
    const option = `members.${name}`
    if (!isOwn(limiter)) throw invalid(option, limiter, 'a limiter of createLimiter or attachLimiter')
    checkOnce(names, name, limiter)
    return limiter.toMember(name)
  })
}

/** The group of limiters in a store. @throws MillraceError if others are among them */
function joinElsewhere(entries: Entries): AsyncLimiterGroup {
  const names = new Map<unknown, string>()
  const all = entries.map(([name, limiter]): [string, Joining] => {
    const expected = 'a limiter that decides where the others do: all members on Redis, or none'
    if (!isJoining(limiter)) throw invalid(`members.${name}`, limiter, expected)
    checkOnce(names, name, limiter)
    return [name, limiter]
  })
  return all[0]![1][JOIN](all)
}

function checkOnce(names: Map<unknown, string>, name: string, limiter: unknown): void {
  const earlier = names.get(limiter)
  if (earlier !== undefined)
    throw invalid(`members.${name}`, limiter, `a limiter other than members.${earlier}`)
  names.set(limiter, name)
}

function isOwn(limiter: unknown): limiter is InlineLimiter<never> | PoolLimiter {
  return limiter instanceof InlineLimiter || (limiter instanceof AsyncFacade && 'toMember' in limiter)
}
