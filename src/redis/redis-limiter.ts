import type { AsyncLimiterGroup } from '../api/async-limiter-group.js'
import type { RuleChange } from '../api/call-options.js'
import { checkCost, checkOptions } from '../api/checks.js'
import { hearsRefusals, presentRoute, publishRefusal } from '../core/channels.js'
import type { Decision } from '../core/decision.js'
import { MillraceError } from '../core/errors.js'
import { JOIN, type Joining, TOGETHER, type TogetherDecider } from '../groups/joining.js'
import type { Key } from '../memory/keys.js'
import type { Windows } from '../policies/policy-plans.js'
import { KeyNames } from '../remote/key-names.js'
import type { Opened } from '../remote/remote-backend.js'
import { RemoteLimiter } from '../remote/remote-limiter.js'
import { windowError } from '../remote/remote-rule.js'
import type { RedisStats } from '../remote/remote-statistics.js'
import type { RemoteStore } from '../remote/remote-store.js'
import { RedisGroup } from './groups/redis-group.js'
import { groupMember, type RedisMember, type RedisParts } from './groups/redis-group-member.js'
import { RedisTogether } from './groups/redis-together.js'
import { storeOpener } from './open-store.js'
import { StrictEngine } from './packed/strict-engine.js'
import type { RedisPlan } from './redis-options.js'
import { ShardedStore } from './shards/sharded-store.js'
import { checkShards, type RedisShard } from './shards/shards-option.js'
import { SplitNames } from './shards/split-names.js'
import { SplitStore } from './shards/split-store.js'
import { scriptedNames } from './stored-rules.js'

interface OpenedRedis extends Opened {
  /** Undefined for a limiter that can't join a group. */
  readonly parts?: RedisParts
  readonly sharded?: ShardedStore
}

/** A limiter whose counts are on Redis. */
export class RedisLimiter extends RemoteLimiter<OpenedRedis> implements Joining {
  /** Why its windows can't change. */
  #fixedBy: string | undefined

  /** @internal */
  constructor(plan: RedisPlan) {
    super(
      'RedisLimiter',
      plan,
      (owner) => openRedis(owner, plan),
      (own) => new RedisLimiter({ ...plan, ...own }),
    )
  }

  /**
   * Replaces the list of shards. Keys whose shard changes are charged at both shards for a window, a granule, the
   * deadline and the option `changeWithin`, all or nothing. All processes must get the same lists in the same order, each list within
   * `changeWithin`. Shards that are no longer in the list stay connected until the change is over.
   *
   * @param shards the new list. A shard of the same name and client keeps its connection; of the same name and another
   * client, the server is taken for the same one at another address
   * @param options `chargeBoth: false`: the counts of keys that move begin again, now, also of changes that are under
   * way. For a shard that is gone for good: else its keys are decided as in an outage until the change is over
   * @returns resolves when the new shards have answered, and have their keys
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION`; `ERR_MILLRACE_OUTAGE` if a new shard does not answer within 2
   * seconds. Then the list stays as it was
   * @example
   * ```ts
   * await limiter.reshard([...clients, new Redis('redis://10.0.0.4:6379')])
   * ```
   */
  async reshard(shards: readonly RedisShard[], options: { chargeBoth?: boolean } = {}): Promise<void> {
    const { sharded } = this.backend.opened
    if (sharded === undefined)
      throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'shards', shards, 'a limiter that has shards')
    const named = checkShards(shards, 'shards')
    checkOptions(options, ['chargeBoth'])
    const { chargeBoth = true } = options
    this.#checkNotMoving('shards', shards)
    if (typeof chargeBoth !== 'boolean')
      throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'chargeBoth', chargeBoth, 'true or false')
    this.#fixedBy = 'has got other shards'
    await sharded.reshard(named, chargeBoth)
  }

  /**
   * Decides at once if that takes no trip: with `mode: 'leased'` by units that this process holds, and by remembered
   * refusals. As {@link check}, but synchronous.
   *
   * @param key the client, as of `check`
   * @param cost the units, 1 by default
   * @returns a decision, which is charged; or undefined: then call `check`, which asks Redis. Nothing was charged
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_KEY`, `ERR_MILLRACE_INVALID_COST`, `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * const decision = limiter.checkNow('user:42') ?? (await limiter.check('user:42'))
   * ```
   */
  checkNow(key: Key, cost = 1): Decision | undefined {
    const { open } = this
    checkCost(cost)
    const text = open.keys.read(key)
    if (this.isMoving) return undefined
    const decision = open.decideNow(text, cost)
    if (decision === undefined || !hearsRefusals() || this.isSilent) return decision
    return publishRefusal(decision, key, this.refusals, undefined, presentRoute())
  }

  #checkNotMoving(option: string, value: unknown): void {
    const expected = 'this for a limiter whose window `update` has not changed'
    if (this.isMoving) throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, value, expected)
  }

  /** @internal */
  override change(rule: string, change: RuleChange): Windows | undefined {
    const windows = super.change(rule, change)
    if (windows === undefined || this.#fixedBy === undefined) return windows
    throw windowError(windows.rules[0].windowMs, `the present one: this limiter ${this.#fixedBy}`)
  }

  override close(): Promise<void> {
    for (const end of this.parts?.onClose ?? []) end()
    return super.close()
  }

  /** @internal */
  [JOIN](members: readonly (readonly [name: string, limiter: Joining])[]): AsyncLimiterGroup {
    return new RedisGroup(members.map(([name, limiter]) => (limiter as RedisLimiter).#memberAs(name)))
  }

  /** @internal */
  [TOGETHER](limiters: readonly object[]): TogetherDecider {
    return new RedisTogether(limiters.map((limiter, i) => (limiter as RedisLimiter).#memberAs(`${i}`)))
  }

  /** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
  #memberAs(name: string): RedisMember {
    const { parts } = this
    const expected = `a limiter without shards and split, and not with ${scriptedNames(' or ')}`
    if (parts === undefined)
      throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', `members.${name}`, this, expected)
    this.#checkNotMoving(`members.${name}`, this)
    this.#fixedBy = 'is in a group'
    return groupMember(name, this, parts)
  }

  /** @internal */
  get parts(): RedisParts | undefined {
    return this.backend.opened.parts
  }

  override async stats(): Promise<RedisStats> {
    const stats = await super.stats()
    const { sharded } = this.backend.opened
    return sharded === undefined ? stats : { ...stats, shards: sharded.statistics() }
  }
}

function openRedis(owner: object, plan: RedisPlan): OpenedRedis {
  const { client, prefix, rules, shards, split, deadlineMs, testTime } = plan
  const ruleNames = rules.map(({ rule }) => rule.name)
  const names = new (split === undefined ? KeyNames : SplitNames)(prefix, ruleNames)
  const open = storeOpener(owner, plan, names)
  const divided = (store: RemoteStore) =>
    split === undefined ? store : new SplitStore(store, split, deadlineMs)
  if (shards !== undefined) {
    const nowMs = testTime ?? (() => performance.now())
    const sharded = new ShardedStore({ ...shards, rules, deadlineMs, names, nowMs, open })
    return { store: divided(sharded), sharded }
  }
  const { channel, store, counting } = open(client, rules)
  const isJoining = split === undefined && counting instanceof StrictEngine
  if (!isJoining) return { store: divided(store) }
  return { store, parts: { plan, names, channel, engine: counting, onClose: new Set() } }
}
