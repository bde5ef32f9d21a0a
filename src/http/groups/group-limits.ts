import type { AsyncLimiter } from '../../api/async-limiter.js'
import type { AsyncLimiterGroup } from '../../api/async-limiter-group.js'
import type { LimiterRule } from '../../api/call-options.js'
import type { Limiter } from '../../api/limiter.js'
import type { GroupKeys, LimiterGroup } from '../../api/limiter-group.js'
import type { Decision } from '../../core/decision.js'
import { MillraceError } from '../../core/errors.js'
import type { MembersDecision } from '../../core/group-decision.js'
import { checkNearLimit, nearShareOf } from '../../core/near-limit.js'
import { ENGINE_OPTIONS } from '../../core/option-names.js'
import { group } from '../../groups/group.js'
import { isKeyString, type Key } from '../../memory/keys.js'
import type { IpKey } from '../addresses/ip-key.js'
import type { HttpRequest } from '../framework.js'
import type { HeaderAccess } from '../headers/header-access.js'
import { DEFAULT_STANDARD, RateLimitHeaders, type Standard } from '../headers/headers.js'
import type { AnyKey, AnyLimits, Judging, Limit, Limits } from '../judging.js'
import { limiterOf, pick } from '../routes/route-limits.js'
import { RouteCounts } from '../stats.js'
import { MemberCounts } from './member-counts.js'
import { MemberKeys } from './member-keys.js'
import { checkGroupOptions } from './options.js'

/** `groupLimit` decides by a group. */
export const BY_GROUP: Judging = {
  limitsOf: (options, access, own) => new GroupLimits(options, access, own),
  keysOf: (options, framework) => new MemberKeys(options, framework),
}

interface Member {
  readonly name: string
  readonly limiter: Limiter | AsyncLimiter
  /** Whether the limiter was made from options. Then it is closed with them. */
  readonly isMade: boolean
}

/** The names of a member's rules: that of the member, or with several rules `account.burst`. */
const rulesOf = ({ name, limiter: { rules } }: Member): LimiterRule[] =>
  rules.map((rule) => ({ ...rule, name: rules.length === 1 ? name : `${name}.${rule.name}` }))

/** The one limit of a middleware that decides by a group. */
class GroupLimits<Response> implements Limits<Response>, Limit<Response> {
  readonly name = 'default'
  readonly hasRoutes = false
  readonly met = Symbol('millrace met')
  readonly limiter: LimiterGroup | AsyncLimiterGroup
  readonly counts: RouteCounts
  readonly headers: RateLimitHeaders<Response>
  readonly takesOwnLimit: boolean
  readonly needsOwnLimit = false
  readonly longestWindowMs: number
  readonly #members: readonly Member[]

  /** @throws MillraceError as `groupLimit` */
  constructor(options: object, access: HeaderAccess<Response>, own: readonly string[]) {
    const given = options as Readonly<Record<string, unknown>>
    const engine = pick(given, ENGINE_OPTIONS)
    const nearLimit = checkNearLimit(engine.nearLimit)
    this.takesOwnLimit = given.limit !== undefined
    const members = checkGroupOptions(options, own).map(([name, { key: _, limiter, ...rules }]): Member => {
      const isMade = limiter === undefined
      return { name, limiter: isMade ? limiterOf(rules, engine) : limiter, isMade }
    })
    this.#members = members
    this.limiter = group(Object.fromEntries(members.map(({ name, limiter }) => [name, limiter])))
    const names = members.map(({ name }) => name)
    const nearLimits = members.map(({ limiter }) => nearLimit ?? nearShareOf(limiter))
    this.counts = new RouteCounts(new MemberCounts(names, nearLimits))
    const { standard = DEFAULT_STANDARD } = given
    this.headers = new RateLimitHeaders(standard as Standard, this, access)
    this.longestWindowMs = Math.max(...this.rules.map(({ windowMs }) => windowMs))
  }

  /** The rules of all members, for headers. */
  get rules(): LimiterRule[] {
    return this.#members.flatMap(rulesOf)
  }

  get showsRefusing(): boolean {
    return true
  }

  get others(): this {
    return this
  }

  find(): this {
    return this
  }

  all(): readonly this[] {
    return [this]
  }

  keyOf(ipKey: IpKey, request: HttpRequest): string {
    return ipKey(request)
  }

  checkOwnLimit(limit: AnyLimits | undefined): { limit?: AnyLimits | undefined } {
    return limit === undefined ? {} : { limit }
  }

  toldKey(keys: AnyKey, decision: Decision): Key {
    return (keys as GroupKeys)[(decision as MembersDecision).member]!
  }

  violatedBy({ rules: parts }: Decision): string[] {
    return this.rules.filter((_, i) => !parts[i]!.allowed).map(({ name }) => name)
  }

  /** @throws MillraceError `ERR_MILLRACE_INVALID_KEY` for keys that are not those of members */
  async clear(keys: unknown): Promise<void> {
    const names = this.#members.map(({ name }) => name)
    const given = typeof keys === 'object' && keys !== null ? Object.keys(keys) : undefined
    if (given === undefined || given.some((name) => !names.includes(name))) {
      const expected = `an object with keys by the names of members: ${names.join(', ')}`
      throw new MillraceError('ERR_MILLRACE_INVALID_KEY', 'keys', keys, expected)
    }
    const own = keys as Readonly<Record<string, unknown>>
    const known = this.#members.filter(({ name }) => isKeyString(own[name])) // no request is limited by others
    await Promise.all(known.map(({ name, limiter }) => limiter.clear(own[name] as string)))
  }

  async close(): Promise<void> {
    await Promise.all(this.#members.map(({ limiter, isMade }) => isMade && limiter.close()))
  }
}
