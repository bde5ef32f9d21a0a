import type { CallLimit } from '../engines/engine.js'
import type { Channel } from './channel.js'
import { Outage } from './outage.js'
import { byOutage, LocalShare } from './outage-policy.js'
import type { RedisPlan } from './redis-options.js'
import { RedisStatistics } from './redis-statistics.js'
import { RefusedKeys } from './refused-keys.js'
import type { RemoteDecision } from './remote-decision.js'
import type { Asked, Asking, StrictEngine } from './strict-engine.js'

/** Decides by Redis, by remembered refusals, and during an outage as the option `onOutage` says. */
export class Decider {
  readonly statistics = new RedisStatistics()
  readonly #owner: object
  readonly #plan: RedisPlan
  readonly #engine: StrictEngine
  readonly #refused: RefusedKeys | undefined
  readonly #local: LocalShare | undefined

  constructor(owner: object, plan: RedisPlan, engine: StrictEngine, channel: Channel) {
    const { rules, onOutage, nodes } = plan
    this.#owner = owner
    this.#plan = plan
    this.#engine = engine
    const isPlain = rules.every(({ rule }) => !rule.countRefused && !rule.shadow)
    this.#refused = plan.rememberRefusals && isPlain ? new RefusedKeys() : undefined
    if (onOutage !== 'local') return
    const shares = rules.map(({ rule }) => ({ ...rule, limit: Math.floor(rule.limit / nodes) }))
    this.#local = new LocalShare(shares, plan.maxKeys)
    channel.onRecovery = () => void this.#report()
  }

  async decide(op: Asking, asked: Asked, limit: CallLimit | undefined): Promise<RemoteDecision> {
    const { key, cost } = asked
    const sentMs = performance.now()
    const known = limit === undefined ? this.#refused?.find(key, cost, sentMs) : undefined
    if (known !== undefined) {
      if (op !== 'p') this.statistics.count(known)
      return known
    }
    const [decision] = (await this.decideAll(op, [asked], limit)) as [RemoteDecision]
    if (limit === undefined && !decision.allowed && decision.source === 'redis')
      this.#refused?.keep(key, decision, cost, sentMs)
    return decision
  }

  async decideAll(op: Asking, asked: readonly Asked[], limit?: CallLimit): Promise<RemoteDecision[]> {
    let decisions: RemoteDecision[]
    try {
      decisions = await this.#engine.ask(op, asked, limit)
      if (op !== 'p') this.#countAdmitted(decisions)
    } catch (outage) {
      if (!(outage instanceof Outage)) throw outage
      this.statistics.noteOutage(outage)
      decisions = asked.map((each) => this.#withoutRedis(op, each, limit))
    }
    if (op !== 'p') for (const decision of decisions) this.statistics.count(decision)
    return decisions
  }

  /** A key has changed, or all of them. */
  forget(key?: string): void {
    if (key === undefined) this.#refused?.clear()
    else this.#refused?.forget(key)
  }

  /** A charge has been given back. */
  refunded(key: string, cost: number): void {
    this.#local?.refund(key, cost)
  }

  /** A limit has changed, to so many units. */
  update(rule: string, limit: number, unit: number): void {
    this.#local?.update(rule, Math.max(1, Math.floor(limit / this.#plan.nodes)) * unit)
    this.#refused?.clear()
  }

  async close(): Promise<void> {
    await this.#local?.close()
  }

  #countAdmitted(decisions: readonly RemoteDecision[]): void {
    if (this.#local === undefined) return
    for (const { allowed, requested } of decisions) if (allowed) this.#local.count(requested)
  }

  #withoutRedis(op: Asking, asked: Asked, limit: CallLimit | undefined): RemoteDecision {
    if (this.#local !== undefined) return this.#local.decide(this.#owner, asked, limit, op !== 'p')
    const limits = this.#engine.unitLimits(limit)
    return byOutage(this.#owner, asked, this.#engine.rules, limits, this.#plan.onOutage === 'open')
  }

  /** Tells Redis what this process has admitted meanwhile. What was not sent is kept for after the next outage. */
  async #report(): Promise<void> {
    const local = this.#local!
    for (const [key, spent] of local.take()) {
      for (const one of spent) {
        const ageMs = Math.max(0, Math.floor(performance.now() - one.atMs))
        const units = this.#engine.rules.map(({ rule }) => Math.ceil(one.units / (rule.unit ?? 1)))
        try {
          await this.#engine.change('a', key, units, [String(ageMs)])
        } catch (outage) {
          if (!(outage instanceof Outage)) throw outage
          if (!outage.mayBeCharged) local.keep(key, one)
        }
      }
    }
  }
}
