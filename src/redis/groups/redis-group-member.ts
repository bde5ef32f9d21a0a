import { checkCallLimit, closedError, type RuleNames } from '../../api/checks.js'
import { rangeOf } from '../../core/algorithms.js'
import { MillraceError } from '../../core/errors.js'
import type { Key } from '../../memory/keys.js'
import { TextKeys } from '../../memory/text-keys.js'
import type { KeyNames } from '../../remote/key-names.js'
import { RemoteDecision } from '../../remote/remote-decision.js'
import type { RemoteLimiter } from '../../remote/remote-limiter.js'
import type { RemoteRule } from '../../remote/remote-rule.js'
import type { Channel } from '../channel.js'
import type { StrictEngine } from '../packed/strict-engine.js'
import type { RedisPlan } from '../redis-options.js'

/** The parts of a limiter that a group uses. */
export interface RedisParts {
  readonly plan: RedisPlan
  readonly names: KeyNames
  readonly channel: Channel
  readonly engine: StrictEngine
  /** Called when the limiter is closed: they end the pending waits of groups. */
  readonly onClose: Set<() => void>
}

/** A limiter on Redis as a member of a group. */
export interface RedisMember extends RedisParts {
  readonly name: string
  readonly limiter: RemoteLimiter
  readonly keys: TextKeys
  readonly ruleNames: RuleNames
  /** The names of its rules in the group. */
  readonly groupNames: readonly string[]
}

export function groupMember(name: string, limiter: RemoteLimiter, parts: RedisParts): RedisMember {
  const rules = parts.plan.rules.map(({ rule }) => rule)
  const names = rules.map((rule) => rule.name)
  const ruleNames = { names, units: rules.map(({ unit }) => unit), ranges: rules.map(rangeOf) }
  const groupNames = names.length === 1 ? [name] : names.map((rule) => `${name}.${rule}`)
  return { ...parts, name, limiter, keys: new TextKeys(limiter), ruleNames, groupNames }
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` for limiters that one call can't decide */
export function checkMembers(members: readonly RedisMember[]): void {
  const [first] = members as [RedisMember, ...RedisMember[]]
  for (const member of members) {
    checkMemberOpen(member)
    const { name, limiter, plan } = member
    const refuse = (expected: string): never => {
      throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', `members.${name}`, limiter, expected)
    }
    if (plan.client !== first.plan.client) refuse(`a limiter with the client of members.${first.name}`)
    if (plan.onOutage !== first.plan.onOutage)
      refuse(`a limiter with onOutage: '${first.plan.onOutage}', like members.${first.name}`)
    if (plan.onOutage === 'local') refuse("a limiter with onOutage: 'closed' or 'open', in a group")
    for (const other of members) {
      if (other === member) break
      const isSame = other.ruleNames.names.some((rule) => member.ruleNames.names.includes(rule))
      if (plan.prefix === other.plan.prefix && isSame)
        refuse(`a limiter with another prefix than members.${other.name}`)
      const same = other.groupNames.find((rule) => member.groupNames.includes(rule))
      if (same !== undefined)
        refuse(`a name by which its rules are not those of members.${other.name}: ${same}`)
    }
  }
}

/** @throws MillraceError `ERR_MILLRACE_CLOSED` */
export function checkMemberOpen({ name, limiter }: RedisMember): void {
  if (limiter.isClosed) throw closedError(`members.${name}`)
}

/** The key of a request to a member. @throws MillraceError */
export const memberKey = ({ keys, name }: RedisMember, key: Key): string => keys.read(key, `keys.${name}`)

/**
 * The limits of a call as the joined limiter takes them, by the names of the rules in the group: of a bucket with a
 * burst not in tokens.
 * @throws MillraceError
 */
export function memberLimits(
  { name, ruleNames, groupNames }: RedisMember,
  limit: unknown,
): [string, number][] {
  const limits = checkCallLimit(limit, ruleNames, `limit.${name}`)
  const all = typeof limits === 'number' ? [limits] : (limits ?? [])
  return all.flatMap((own, i): [string, number][] => {
    if (own === undefined) return []
    const { rate } = ruleNames.ranges[i]!
    return [[groupNames[i]!, rate === undefined ? own : (own * rate.limit) / rate.burst]]
  })
}

/** The rules as they are now, by the names that they have in the group. */
export const rulesOf = ({ engine, groupNames }: RedisMember): RemoteRule[] =>
  engine.rules.map((remote, i) => ({ ...remote, rule: { ...remote.rule, name: groupNames[i]! } }))

/**
 * The part of a group's decision that is a member's, as a decision of that member.
 * @param from the index of its first rule
 * @param deciding the index of the rule that refused, or -1
 */
export function memberDecision(
  { ruleNames, limiter }: RedisMember,
  key: string,
  decision: RemoteDecision,
  from: number,
  deciding: number,
): RemoteDecision {
  const count = ruleNames.names.length
  const parts = decision.parts
    .slice(from, from + count)
    .map((part, i) => ({ ...part, rule: ruleNames.names[i]! }))
  const isOwn = deciding >= from && deciding < from + count
  const refusing = isOwn ? deciding - from : parts.findIndex(({ allowed }) => !allowed)
  const { cost, limits, outage } = decision.requested
  const own = { owner: limiter, key, cost, limits: limits?.slice(from, from + count) }
  const requested = outage === undefined ? own : { ...own, outage }
  return new RemoteDecision(requested, decision.source, parts, refusing)
}
