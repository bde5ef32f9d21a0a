import type { AsyncLimiterGroup } from '../../api/async-limiter-group.js'
import { checkCost, checkOptions, foreignDecisionError, settledError } from '../../api/checks.js'
import type { GroupKeys, GroupOptions, GroupStats, GroupWaitOptions } from '../../api/limiter-group.js'
import type { AsyncReservation } from '../../api/reservation.js'
import { COUNTED } from '../../core/closing.js'
import { DecisionCounts } from '../../core/decision-counts.js'
import { MembersDecision } from '../../core/group-decision.js'
import { type Inspect, inspectAs } from '../../core/inspect.js'
import { admitted } from '../../core/limited.js'
import { Refusals, type TopOptions } from '../../core/refusals.js'
import { DECIDERS } from '../../core/store-calls.js'
import type { TopKey } from '../../core/top-keys.js'
import { checkMemberKeys, defineNotShared, statsOf, told } from '../../groups/base-group.js'
import { TextHandle } from '../../memory/text-keys.js'
import type { RemoteDecision } from '../../remote/remote-decision.js'
import { RemoteLimiter } from '../../remote/remote-limiter.js'
import { GroupEngine, joinedKey, keysIn } from './group-engine.js'
import {
  checkMemberOpen,
  checkMembers,
  memberDecision,
  memberKey,
  memberLimits,
  type RedisMember,
  rulesOf,
} from './redis-group-member.js'

/**
 * A group of limiters on Redis. To Redis it is one limiter with the rules of all members, each with the key of its
 * member: one call of the script decides, all or nothing, and no other request sees half of it.
 */
export class RedisGroup implements AsyncLimiterGroup {
  readonly #members: readonly RedisMember[]
  readonly #counts = new DecisionCounts()
  readonly #names: readonly string[]
  /** By the index of a rule: the index of its member. */
  readonly #memberOf: readonly number[]
  readonly #joined: RemoteLimiter
  readonly #decided = new WeakMap<MembersDecision, RemoteDecision>()
  readonly #refusals = new Refusals()
  #waits = 0
  /** A closed member ends the pending waits of the group, which nobody can use any more. */
  readonly #end = (): void => void this.#joined.close()

  /** @internal */
  constructor(members: readonly RedisMember[]) {
    checkMembers(members)
    const [{ plan }] = members as [RedisMember]
    const own = { ...plan, rules: members.flatMap(rulesOf), rememberRefusals: false }
    this.#members = members
    this.#names = members.map(({ name }) => name)
    this.#memberOf = members.flatMap(({ groupNames }, i) => groupNames.map(() => i))
    this.#joined = new JoinedLimiter('RedisGroup', own, (owner) => ({
      store: new GroupEngine(owner, members),
    }))
    defineNotShared(this)
  }

  async check(keys: GroupKeys, cost = 1, options?: GroupOptions): Promise<MembersDecision> {
    checkCost(cost)
    const [key, limit] = this.#request(keys, options)
    return this.#counted((await this.#joined.check(key, cost, limit)) as RemoteDecision)
  }

  async checkOrThrow(keys: GroupKeys, cost?: number, options?: GroupOptions): Promise<MembersDecision> {
    return admitted(await this.check(keys, cost, options))
  }

  async peek(keys: GroupKeys, cost = 1, options?: GroupOptions): Promise<MembersDecision> {
    checkCost(cost)
    const [key, limit] = this.#request(keys, options)
    return this.#decisionOf((await this.#joined.peek(key, cost, limit)) as RemoteDecision)
  }

  async reserve(
    keys: GroupKeys,
    cost: number,
    options?: GroupOptions,
  ): Promise<AsyncReservation<MembersDecision>> {
    checkCost(cost)
    const [key, limit] = this.#request(keys, options)
    const reserved = await this.#joined.reserve(key, cost, limit)
    const joined = reserved.decision as RemoteDecision
    const decision = this.#counted(joined)
    const commit = async (actualCost?: number): Promise<number> => {
      if (!joined.isGivenBack && partsOf(decision).some(({ isGivenBack }) => isGivenBack))
        throw settledError()
      const changed = await reserved.commit(actualCost)
      if (joined.isGivenBack) giveBackAll(decision)
      return changed
    }
    return { decision, commit, cancel: async () => 0 - (await commit(0)) }
  }

  async wait(keys: GroupKeys, options: GroupWaitOptions = {}): Promise<MembersDecision> {
    checkOptions(options, ['cost', 'signal', 'limit'])
    const { limit, ...others } = options
    const [key, own] = this.#request(keys, limit === undefined ? undefined : { limit })
    if (this.#waits++ === 0) for (const { onClose } of this.#members) onClose.add(this.#end)
    try {
      return this.#counted((await this.#joined.wait(key, { ...others, ...own })) as RemoteDecision)
    } finally {
      if (--this.#waits === 0) for (const { onClose } of this.#members) onClose.delete(this.#end)
    }
  }

  async refund(decision: MembersDecision): Promise<number> {
    const own = this.#decided.get(decision)
    if (own === undefined) throw foreignDecisionError(decision, 'group')
    const parts = partsOf(decision)
    if (parts.some(({ isGivenBack }) => isGivenBack)) {
      // Members have given back their own parts.
      const given = await Promise.all(parts.map((part, i) => this.#members[i]!.limiter.refund(part)))
      return Math.max(...given)
    }
    if (own.isGivenBack) return 0
    giveBackAll(decision)
    try {
      return await this.#joined.refund(own)
    } catch (error) {
      if (!own.isGivenBack) for (const part of parts) part.keep()
      throw error
    }
  }

  /** @internal */
  [DECIDERS](): readonly object[] {
    return [this.#joined]
  }

  async top(options: TopOptions): Promise<TopKey[]> {
    return this.#refusals.top(options)
  }

  async stats(): Promise<GroupStats> {
    return this[COUNTED]()
  }

  /** @internal */
  [COUNTED](): GroupStats {
    return statsOf(this.#counts)
  }

  /** The value for `JSON.stringify`. */
  toJSON(): object {
    return { members: this.#names }
  }

  /** The text for `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    return inspectAs('AsyncLimiterGroup', { members: this.#names }, options, inspect)
  }

  #request(
    keys: GroupKeys,
    options: GroupOptions | undefined,
  ): [key: TextHandle, options: { limit: never } | undefined] {
    if (options !== undefined) checkOptions(options, ['limit'])
    checkMemberKeys(keys, this.#names)
    const limits: unknown = options?.limit
    if (limits !== undefined) checkOptions(limits, this.#names, 'limit')
    for (const member of this.#members) checkMemberOpen(member)
    const texts = this.#members.map((member) => memberKey(member, keys[member.name]!))
    const own = this.#members.flatMap((member) =>
      memberLimits(member, (limits as Record<string, unknown> | undefined)?.[member.name]),
    )
    const isOne = this.#memberOf.length === 1 // then a limit has no name
    const limit = isOne ? own[0]?.[1] : Object.fromEntries(own)
    const key = new TextHandle(this.#joined, joinedKey(texts))
    return [key, own.length === 0 ? undefined : { limit: limit as never }]
  }

  /** Counts a decision in the statistics of the members: an admission in all, a refusal in the one that refused. */
  #counted(joined: RemoteDecision): MembersDecision {
    const decision = this.#decisionOf(joined)
    const parts = partsOf(decision)
    this.#counts.countOfMembers(
      decision,
      this.#names,
      (i) => this.#members[i]!.limiter.statistics.decisions.nearRules(parts[i]!) !== 0,
    )
    for (const [i, { limiter, name }] of this.#members.entries())
      if (decision.allowed || name === decision.member) limiter.statistics.decisions.count(parts[i]!)
    const keys = keysIn(joined.requested.key)
    return told(decision, Object.fromEntries(this.#names.map((name, i) => [name, keys[i]!])), this.#refusals)
  }

  #decisionOf(joined: RemoteDecision): MembersDecision {
    const keys = keysIn(joined.requested.key)
    const deciding = joined.allowed ? -1 : joined.parts.findIndex(({ rule }) => rule === joined.rule)
    const parts = this.#members.map((member, i) =>
      memberDecision(member, keys[i]!, joined, this.#memberOf.indexOf(i), deciding),
    )
    const decision = new MembersDecision(this, this.#names, parts, this.#memberOf[deciding] ?? -1)
    this.#decided.set(decision, joined)
    return decision
  }
}

/** The group publishes its refusals, in the names of members. */
class JoinedLimiter extends RemoteLimiter {
  protected override get isSilent(): boolean {
    return true
  }
}

/** The decisions of the members. */
const partsOf = ({ parts }: MembersDecision): readonly RemoteDecision[] => parts as readonly RemoteDecision[]

/** The charge of a decision is given back in all members. */
function giveBackAll(decision: MembersDecision): void {
  for (const part of partsOf(decision)) part.giveBack()
}
