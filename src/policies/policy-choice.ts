// Which policy a key has by now: the cache of a limiter and its plans.

import type { CheckOptions } from '../api/call-options.js'
import type { LimiterStats } from '../api/limiter.js'
import type { ConfigStore } from '../config/config-store.js'
import { publishPolicy } from '../core/channels.js'
import type { ConfigStatistics } from '../core/config-statistics.js'
import { MillraceError } from '../core/errors.js'
import { loadParts } from '../core/lazily.js'
import { lruCache } from '../core/lru-cache.js'
import type { Refusals } from '../core/refusals.js'
import { sumOf } from '../core/sum-of.js'
import { isUncounted } from '../core/uncounted-limit.js'
import type { CallLimit } from '../engines/engine.js'
import type { RuleEngine } from '../engines/inline/rule-engine.js'
import { presentShape } from '../limiters/shown-rules.js'
import { type CachedPolicy, type CacheSettings, PolicyCache } from './cache.js'
import { isKnown, limitOfValue, memberIn, OF_MEMBER, valueIn } from './plan.js'
import {
  type MemberMaker,
  type PlanLimits,
  type PlanMember,
  PolicyPlans,
  type Windows,
} from './policy-plans.js'
import type { PolicyShape } from './policy-shape.js'

/** What a limiter does when policies change. */
export interface ChoiceUser {
  moved(key: string, from: number, to: number): void
  dropped(keys: readonly string[] | undefined): void
  displaced?(key: string): void
}

/** The options of a choice, checked. */
export interface ChoiceSettings {
  readonly store: ConfigStore
  readonly cache: CacheSettings
  readonly maxWindows: number
  readonly onMiss: 'default' | 'refuse'
  readonly report: (error: MillraceError) => void
}

/** What decides for a key. It holds over an await, when the number of its plan may mean nothing any more. */
export interface KeyOwner<L> {
  readonly member: PlanMember<L>
  /** The limits of the policy, in the units of the member's limiter; undefined: those of the member. */
  readonly limits: CallLimit | undefined
}

/** A limiter that knows its own decisions. */
export interface OwningLimiter {
  owns(decision: unknown): boolean
  refusals: Refusals
  /** If it counts in memory. */
  readonly ruleEngines?: readonly RuleEngine[]
  close(): Promise<void>
}

/** Chooses the plans of keys for a limiter. */
export class PolicyChoice<L extends OwningLimiter> {
  readonly members: readonly PlanMember<L>[]
  readonly onMiss: 'default' | 'refuse'
  readonly deadlineMs: number
  isOpen = true
  readonly #plans: PolicyPlans<L>
  readonly #settings: ChoiceSettings
  #cache!: PolicyCache
  #user: ChoiceUser | undefined
  /** The changes of the first member's windows that this thread knows. They only rise. */
  #changes = 0
  #endCheck = () => {}

  /** @param first counts the keys without a policy */
  constructor(first: PlanMember<L>, maker: MemberMaker<L>, settings: ChoiceSettings) {
    const { maxWindows, cache, report } = settings
    const { refusals } = first.limiter
    const make = (shape: PolicyShape) => Object.assign(maker.make(shape), { refusals })
    this.#plans = new PolicyPlans(first, { ...maker, make }, maxWindows, 2 * cache.maxKeys, report)
    this.members = this.#plans.members
    this.onMiss = settings.onMiss
    this.deadlineMs = cache.deadlineMs
    this.#settings = settings
    lruCache() // the first look-up needs it
    loadParts()
  }

  /** Counts the keys without a policy. */
  get first(): L {
    return this.#default.limiter
  }

  get #default(): PlanMember<L> {
    return this.members[memberIn(this.#plans.defaultPlan)]!
  }

  /** The member that made a decision. */
  ownerOf(decision: unknown): L | undefined {
    return this.members.find(({ limiter }) => limiter.owns(decision))?.limiter
  }

  /** Tells what goes wrong. */
  report(error: MillraceError): void {
    this.#settings.report(error)
  }

  /** Begins to watch the store. */
  begin(user: ChoiceUser): void {
    const { store, cache, report } = this.#settings
    this.#user = user
    this.#plans.onForget = () => {
      user.dropped(undefined)
      this.#cache.replan()
    }
    this.#cache = new PolicyCache(store, cache, {
      planOf: (found) => this.#plans.planOf(found),
      moved: (key, from, to) => {
        if (isKnown(from)) publishPolicy(undefined, key) // else it is the first look at a key
        user.moved(key, from, to)
      },
      dropped: (keys) => user.dropped(keys),
      displaced: (key) => user.displaced?.(key),
      failed: report,
    })
    this.#endCheck = store.addCheck(
      (policy) => this.#plans.check(policy),
      (policy) => this.#plans.release(policy),
    )
  }

  /**
   * Notices that `update` has changed a window of the first member, in any thread or process. What a key has used
   * elsewhere is brought along when the key is next asked for.
   */
  refresh(): void {
    const engines = this.first.ruleEngines
    if (engines === undefined) return
    let changes = 0
    for (const engine of engines) changes += presentShape(engine).record
    if (changes === this.#changes) return
    this.#changes = changes
    this.#cache.moveAll()
    if (this.#plans.isFirstShared) this.#plans.separateFirst()
    else this.#user?.dropped(undefined)
  }

  /**
   * Lets the keys without a policy count in other windows from here on. What a key has used elsewhere is brought along
   * when it is next asked for.
   * @param make makes a limiter for these windows
   * @param begin makes one ready that has been made now or earlier
   * @throws MillraceError Then the default stays as it is
   */
  replaceDefault(windows: Windows, make: (tag: number) => L, begin: (limiter: L) => void): void {
    const { refusals } = this.first
    const member = this.#plans.memberFor(windows, (tag) => Object.assign(make(tag), { refusals }))
    begin(this.members[member]!.limiter)
    this.#plans.useDefault(member)
    this.#cache.moveAll()
  }

  /** The keys that are cached. */
  keys(): string[] {
    return this.#cache.keys()
  }

  /** What a key has used could not be brought along: that is tried again when it is next asked for. */
  moveAgain(key: string): void {
    this.#cache.moveAgain(key)
  }

  /** @see PolicyCache.peek */
  peek(key: string): CachedPolicy {
    this.refresh()
    return this.#cache.peek(key)
  }

  /** The plan of what was found, at present: it may have made room for other keys, and plans be forgotten, since. */
  planIn({ plan, found, isKept }: CachedPolicy): number {
    return isKept || !isKnown(plan) ? plan : this.#plans.planOf(found).plan
  }

  /** @see PolicyCache.isCurrent */
  isCurrent(found: CachedPolicy): boolean {
    this.refresh()
    return this.#cache.isCurrent(found)
  }

  /** Waits until the policy of a key is known, at most for the deadline. */
  load(key: string): Promise<CachedPolicy> {
    this.refresh()
    return this.#cache.get(key)
  }

  /** The error of a call that can't go on without the policy. */
  unknownError(): MillraceError {
    const expected = 'a configuration store that has answered'
    return new MillraceError('ERR_MILLRACE_CONFIG_STORE', 'key', 'a key whose policy is not known', expected)
  }

  /** The owner of a key by what is known of its policy now; undefined: a call of the key is to be refused. */
  ownerBy(cached: CachedPolicy): KeyOwner<L> | undefined {
    const plan = this.planIn(cached)
    const { found } = cached
    if (!isKnown(plan) && this.onMiss === 'refuse') return undefined
    const member = isKnown(plan) ? this.members[memberIn(plan)]! : this.#default
    if (!isKnown(plan) || valueIn(plan) === OF_MEMBER || found === undefined)
      return { member, limits: undefined }
    return { member, limits: limitsFor(member, this.#plans.limitsIn(found.policy)) }
  }

  /** The limits of a plan for its engine, with `value`, which is not `OF_MEMBER`. No other plan may have been made since. */
  limitsOf(plan: number, value: number): CallLimit {
    const member = this.members[memberIn(plan)]!
    return limitsFor(
      member,
      member.shape.rules.length === 1 ? [limitOfValue(value)] : this.#plans.listOf(value),
    )
  }

  /** Options of a call with the limits of the owner, where the call has none of its own. */
  optionsFor<O extends CheckOptions>({ member, limits: own }: KeyOwner<L>, options: O): O {
    if (own === undefined) return options
    const { rules } = member.shape
    if (typeof own === 'number') {
      // The limit of such a rule is a rate, and this member has that of the policy.
      const isBurst = rules[0].rate !== undefined && !isUncounted(own)
      return options.limit !== undefined || isBurst ? options : { ...options, limit: own }
    }
    const limits = Object.fromEntries(
      rules.flatMap(({ name, rate }, i) =>
        rate === undefined || isUncounted(own[i]!) ? [[name, own[i]!]] : [],
      ),
    )
    const { limit } = options
    if (limit !== undefined && (typeof limit !== 'object' || limit === null)) return options // refused by name
    return { ...options, limit: { ...limits, ...limit } }
  }

  /** Whether any rule counts in units of its own. */
  get hasUnit(): boolean {
    return this.members.some(({ shape }) => shape.rules.some(({ unit }) => unit !== undefined))
  }

  statistics(): ConfigStatistics {
    const { loads, failures, stale, invalid } = this.#cache.statistics
    const { unfit } = this.#plans
    return { keys: this.#cache.size, windows: this.members.length, loads, failures, stale, invalid, unfit }
  }

  /** Closes the members. The store stays open: it may be that of others, too. */
  async close(): Promise<void> {
    this.isOpen = false
    this.#endCheck()
    this.#cache.close()
    await Promise.all(this.members.map(({ limiter }) => limiter.close()))
  }
}

function limitsFor({ shape: { rules } }: PlanMember<unknown>, limits: PlanLimits): CallLimit {
  if (rules.length === 1) return limits[0]! * (rules[0].unit ?? 1)
  return limits.map((limit, i) => limit * (rules[i]!.unit ?? 1))
}

/** The statistics of all members together. `space` has the memory of all but the first. */
export function totalOf(all: readonly LimiterStats[], space?: SharedArrayBuffer): LimiterStats {
  const total = all.slice(1).reduce<LimiterStats>(sumOf, all[0]!)
  if (space === undefined || space.byteLength === 0) return total
  return { ...total, bytes: all[0]!.bytes + space.byteLength }
}
