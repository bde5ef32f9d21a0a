import type { GroupOptions } from '../../api/limiter-group.js'
import { invalid } from '../../core/errors.js'
import type { GroupDecision } from '../../core/group-decision.js'
import { ENGINE_OPTIONS } from '../../core/option-names.js'
import { isIpKey } from '../addresses/ip-key.js'
import {
  type Awaitable,
  type EngineOptions,
  HTTP_OPTIONS,
  type RequestOptions,
  type RouteRules,
} from '../options.js'
import { checkNames, RULES_OF_A_ROUTE } from '../routes/route-limits.js'

/** A member of a {@link GroupLimitOptions.members | group}: its rules or its limiter, and its key. */
export interface GroupMemberRules<Request> extends RouteRules {
  /**
   * The key of this member: a string of 1 to 65,536 characters. With an empty or a longer one, this member limits the
   * request by its client's address; if that is not known, all such requests count together.
   * @default `ipKey()`: the client's address
   */
  key?: ((request: Request) => Awaitable<string>) | undefined
}

/**
 * The options of `groupLimit`, which are the same in every framework: those of `rateLimit` without `key`, `routes`, `ban`
 * and `delay`, and with `members` in place of rules.
 */
export interface GroupLimitOptions<Request, Response>
  extends Omit<EngineOptions, 'shared'>,
    RequestOptions<Request, Response, GroupDecision> {
  /**
   * The limiters by names of your choice, each with a key of the request. A request passes if all of them admit it;
   * else none is charged. They are charged in the order of the object: put the one that refuses most first. All members
   * are on one Redis, or none is.
   */
  members: Readonly<Record<string, GroupMemberRules<Request>>>
  /**
   * Limits of this request, by the names of members: `{ account: 20 }`. Undefined: those of the rules.
   * @default the limits of the rules
   */
  limit?: ((request: Request) => Awaitable<GroupOptions['limit'] | undefined>) | undefined
}

/** The keys that `reset` of a `groupLimit` forgets, by the names of members. */
export type MemberKeys = Readonly<Record<string, string>>

/** The options of a limiter, beside a function `limit`. */
const OTHERS = ['limiter', 'key', 'routes', 'ban', 'delay']
const KNOWN = [
  ...ENGINE_OPTIONS.filter((name) => name !== 'shared'),
  ...HTTP_OPTIONS.filter((name) => !OTHERS.includes(name)),
  'members',
  'limit',
]

type Members = readonly (readonly [name: string, member: GroupMemberRules<never>])[]

/**
 * The members by their names.
 * @param own the names of options that only this framework has
 * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` for unknown options, and for members that are missing or wrong
 */
export function checkGroupOptions(options: object, own: readonly string[]): Members {
  checkNames(options, [...KNOWN, ...own])
  const { members, limit } = options as Readonly<Record<string, unknown>>
  if (limit !== undefined && typeof limit !== 'function') throw invalid('limit', limit, 'a function')
  return membersOf(members)
}

/** @throws MillraceError */
export function membersOf(members: unknown): Members {
  const expected =
    "an object such as { account: { limit: 5, window: '15m', key: (request) => request.body.account } }"
  if (typeof members !== 'object' || members === null || Array.isArray(members))
    throw invalid('members', members, expected)
  const entries = Object.entries(members)
  if (entries.length === 0) throw invalid('members', members, expected)
  for (const [name, member] of entries) {
    const option = `members.${name}`
    if (!/^[\x20-\x7e]*$/.test(name))
      throw invalid(
        option,
        name,
        'a name of printable ASCII characters, because the RateLimit headers contain it',
      )
    if (typeof member !== 'object' || member === null)
      throw invalid(option, member, 'an object with rules or a limiter, and a key')
    checkNames(member, [...RULES_OF_A_ROUTE, 'key'], option)
    if (member.key !== undefined && typeof member.key !== 'function')
      throw invalid(`${option}.key`, member.key, 'a function')
  }
  return entries
}

/** The same members with other key functions, for a framework whose requests are not those of the user's functions. */
export function withKeys<To>(
  members: unknown,
  of: (key: (...given: never[]) => Awaitable<string>) => (request: To) => Awaitable<string>,
): GroupLimitOptions<To, never>['members'] {
  const made = membersOf(members).map(([name, { key, ...member }]) => [
    name,
    key === undefined || isIpKey(key)
      ? { ...member, ...(key && { key }) }
      : { ...member, key: of(key as never) },
  ])
  return Object.fromEntries(made)
}
