import type { Decision } from '../core/decision.js'
import type { LimiterRule } from '../core/limiter-rule.js'
import type { Opened } from '../remote/remote-backend.js'
import { RemoteLimiter } from '../remote/remote-limiter.js'
import type { RedisStats } from '../remote/remote-statistics.js'
import type { ClientPlan } from './client-options.js'
import { ServiceStore } from './service-store.js'

/** The state of an engine, as this client sees it. */
export interface EngineStats {
  name: string
  /** `'open'`: the engine has not answered, and its keys are decided without it until it does. */
  breaker: 'closed' | 'open'
}

/** The counters of one client. What only a table in memory has is 0. */
export interface ClientStats extends Omit<RedisStats, 'leases'> {
  /** The engines, in the order of the option `urls`. */
  engines: EngineStats[]
}

interface OpenedService extends Opened {
  readonly store: ServiceStore
}

/** The rules that have made some decisions. */
interface RuleSource {
  readonly rules: readonly LimiterRule[]
}

/** Beyond that, the sources of other policies are made again. */
const MOST_SOURCES = 64

/** A limiter whose decisions are made by a decision service. */
export class ClientLimiter extends RemoteLimiter<OpenedService> {
  /** By the names of rules. */
  readonly #sources = new Map<string, RuleSource>()

  /** @internal */
  constructor(plan: ClientPlan) {
    super('ClientLimiter', plan, (owner) => ({ store: new ServiceStore(owner, plan) }))
  }

  /**
   * The rules that have made a decision: a key may have a policy of its own, and the rules of the service may change.
   * @internal
   */
  deciderOf({ rules }: Decision): RuleSource {
    const names = JSON.stringify(rules.map(({ rule, limit }) => [rule, limit]))
    const known = this.#sources.get(names)
    if (known !== undefined) return known
    if (this.#sources.size === MOST_SOURCES) this.#sources.clear()
    const own = this.rules
    const longestMs = Math.max(...own.map(({ windowMs }) => windowMs))
    const source = {
      rules: rules.map(({ rule, limit }) => {
        const served = own.find(({ name }) => name === rule) ?? { ...own[0]!, windowMs: longestMs }
        return { ...served, name: rule, limit }
      }),
    }
    this.#sources.set(names, source)
    return source
  }

  /**
   * Returns the counters of this client.
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_CLOSED`
   * @example
   * ```ts
   * const { outages, engines } = await limiter.stats()
   * if (outages > 0) console.warn('decided without the service', engines)
   * ```
   */
  override async stats(): Promise<ClientStats> {
    const stats = await super.stats()
    const engines = this.backend.opened.store.engines.map(
      ({ name, isDown }): EngineStats => ({ name, breaker: isDown ? 'open' : 'closed' }),
    )
    return { ...stats, engines }
  }
}
