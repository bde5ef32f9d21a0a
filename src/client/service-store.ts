import { closedError } from '../api/checks.js'
import { invalid, MillraceError } from '../core/errors.js'
import { setTimeout } from '../core/real-timers.js'
import { Rendezvous } from '../core/rendezvous.js'
import { ofRate } from '../core/rule-options.js'
import { countsRefusals } from '../core/verdict.js'
import type { CallLimit } from '../engines/engine.js'
import { isUnwelcome } from '../remote/answers.js'
import { KeyNames } from '../remote/key-names.js'
import { Outage } from '../remote/outage.js'
import { RemoteDecision } from '../remote/remote-decision.js'
import type { RemoteRule } from '../remote/remote-rule.js'
import type { Asked, Asking, Changing, RemoteStore, StoreCounters } from '../remote/remote-store.js'
import type { ClientPlan } from './client-options.js'
import { Engine } from './engine.js'
import { KEY_CHANGES } from './key-changes.js'
import { rulesShown } from './service-rules.js'
import { readLimiters, readNumber, toWire, type WireCheck, type WireNumber } from './wire.js'

/** The rules are read again after so long, with the next request: the service may have been started with others. */
const RULES_LAST_MS = 60_000
/** Between two attempts of `ready`. */
const PAUSE_MS = 100
/** `source` of a decision that a service has made in its memory. */
const SOURCE = 'service'
const NOTHING_LOST: StoreCounters = { restored: 0 }

/** The limiters of a decision service: of one engine, or of several with the keys that rendezvous hashing gives them. */
export class ServiceStore implements RemoteStore {
  readonly mayHaveNoPlace = true
  readonly counters = NOTHING_LOST
  readonly #owner: object
  readonly #limiter: string | undefined
  readonly #engines: readonly Engine[]
  readonly #retriesCharges: boolean
  readonly #byKey: Rendezvous<Engine>
  readonly #names = new KeyNames('', [])
  #rules: readonly RemoteRule[]
  /** As the service has them, or as a user expects that. */
  #served: readonly RemoteRule[]
  #learnedMs = Number.NEGATIVE_INFINITY
  #learning: Promise<void> | undefined
  #isClosed = false
  onRecovery: () => void = () => {}
  onRules: () => void = () => {}

  constructor(owner: object, plan: ClientPlan) {
    this.#owner = owner
    this.#limiter = plan.limiter
    this.#retriesCharges = plan.retryCharges
    this.#rules = plan.rules
    this.#served = plan.rules
    this.#engines = plan.engines.map((named) => new Engine(named, plan))
    this.#byKey = new Rendezvous(this.#engines.map((engine) => [engine.name, engine]))
    for (const engine of this.#engines) {
      engine.onRecovery = () => {
        this.#learnedMs = Number.NEGATIVE_INFINITY
        this.onRecovery()
      }
    }
  }

  get rules(): readonly RemoteRule[] {
    return this.#rules
  }

  set rules(rules: readonly RemoteRule[]) {
    this.#rules = rules
  }

  /** The engines, and whether each answers. */
  get engines(): readonly Pick<Engine, 'name' | 'isDown'>[] {
    return this.#engines
  }

  /** @throws MillraceError (rejects) if the service refuses the token, has no such limiter, or is none */
  async ready(): Promise<void> {
    await Promise.all(this.#engines.map((engine) => this.#untilReady(engine)))
  }

  /** Each key is a call of its own, so that an engine that is away has the outage policy for its own keys only. */
  divide(asked: readonly Asked[]): number[][] {
    return asked.map((_, i) => [i])
  }

  async ask(op: Asking, asked: readonly Asked[], limit?: CallLimit): Promise<RemoteDecision[]> {
    this.#learnInTime()
    return Promise.all(asked.map((each) => this.#decide(op, each, limit)))
  }

  async change(
    op: Changing,
    key: string,
    units: readonly number[],
    more: readonly string[] = [],
  ): Promise<number[]> {
    const { path, fields, read, takesKey = false } = KEY_CHANGES[op as keyof typeof KEY_CHANGES]
    const longestMs = Math.max(...this.#rules.map(({ windowMs }) => windowMs))
    if (op === 'penalizeAgo' && Number(more[0]) >= longestMs) return [0] // it counts no more
    const body = { ...this.#named(key), ...fields(units, this.#rules) }
    return [await this.#of(key).call({ path, body, takesKey }, read)]
  }

  settle(decision: RemoteDecision, actualCost: number): Promise<number> {
    const body = { token: decision.parts[0]!.token, cost: actualCost }
    const call = { path: '/v1/commit', body, takesKey: true }
    return this.#of(decision.requested.key).call(call, (json) => readNumber(json, 'committed'))
  }

  usage(key: string, ms: number, index: number): Promise<number> {
    const rule = this.#rules[index]!.rule.name
    const body = { ...this.#named(key), lastMs: ms, rule }
    const call = { path: '/v1/usage', body, isRead: true }
    return this.#of(key).call(call, (json) => readNumber(json, 'usage'))
  }

  unitLimits(limit: CallLimit | undefined): readonly (number | undefined)[] | undefined {
    if (limit === undefined) return undefined
    const limits = typeof limit === 'number' ? [limit] : limit
    return limits.map((own, i) => own && own / (this.#rules[i]!.rule.unit ?? 1))
  }

  async clearAll(): Promise<void> {
    const expected = 'clear(key): the service forgets single keys only'
    throw invalid('clearAll', 'a client of a decision service', expected)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#engines.map((engine) => engine.close()))
  }

  async #decide(
    op: Asking,
    { key, cost, free }: Asked,
    limit: CallLimit | undefined,
  ): Promise<RemoteDecision> {
    const engine = this.#of(key)
    const own = this.#limitOf(limit, free)
    const check: WireCheck = { ...this.#named(key), cost, ...(own !== undefined && { limit: own }) }
    // The service charges what such a rule refuses, but `wait` asks without charging that.
    const isCharged = op === 'try' && this.#rules.some(({ rule }) => countsRefusals(rule))
    const first = await engine.decide(op === 'peek' || isCharged ? 'peek' : 'check', check)
    const decided = isCharged && first.refusing < 0 ? await engine.decide('check', check) : first
    const { parts, refusing, source = SOURCE } = decided
    return new RemoteDecision({ owner: this.#owner, key, cost }, source, parts, refusing)
  }

  #of(key: string): Engine {
    return this.#engines.length === 1 ? this.#engines[0]! : this.#byKey.find(this.#names.tagOf(key))
  }

  #named(key: string): { key: string; limiter?: string } {
    return this.#limiter === undefined ? { key } : { key, limiter: this.#limiter }
  }

  /** The limits that the service has to be told; undefined: it decides by its own. */
  #limitOf(limit: CallLimit | undefined, free: readonly boolean[] | undefined): WireCheck['limit'] {
    if (limit === undefined && this.#rules === this.#served) return undefined
    const limits = typeof limit === 'number' ? [limit] : limit
    const own = this.#rules.flatMap(({ rule }, i): [string, WireNumber][] => {
      const changed = rule.limit === this.#served[i]!.rule.limit ? undefined : rule.limit * (rule.unit ?? 1)
      const one = free?.[i] ? Number.POSITIVE_INFINITY : (limits?.[i] ?? changed)
      return one === undefined ? [] : [[rule.name, toWire(ofRate(rule, one))]] // what a bucket holds, as its limit
    })
    if (own.length === 0) return undefined
    return this.#rules.length === 1 ? own[0]![1] : Object.fromEntries(own)
  }

  async #untilReady(engine: Engine): Promise<void> {
    for (;;) {
      try {
        await this.#learn(engine)
        return
      } catch (error) {
        if (!(error instanceof Outage)) throw error
        if (isUnwelcome(error.cause)) throw error.toError()
        if (this.#isClosed) throw closedError()
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      }
    }
  }

  /** Reads the rules meanwhile, if they have not been read for a while. No decision waits for them. */
  #learnInTime(): void {
    const nowMs = performance.now()
    if (nowMs - this.#learnedMs < RULES_LAST_MS) return
    this.#learnedMs = nowMs
    this.#learning ??= this.#learn(this.#engines[0]!)
      .catch((error: unknown) => {
        // Decisions hear of an outage, `ready` of everything: `check` answers without the rules.
        if (!(error instanceof Outage || error instanceof MillraceError)) throw error
        this.#learnedMs = nowMs - RULES_LAST_MS + PAUSE_MS
      })
      .finally(() => {
        this.#learning = undefined
      })
  }

  async #learn(engine: Engine): Promise<void> {
    const shown = await engine.call({ method: 'GET', path: '/v1/limiters', isRead: true }, readLimiters)
    const name = this.#limiter
    const own = shown.limiters.find((limiter) => name === undefined || limiter.name === name)
    if (own === undefined) {
      const names = shown.limiters.map((limiter) => `'${limiter.name}'`).join(', ')
      throw invalid('limiter', name, `a limiter of the service: ${names}`)
    }
    for (const each of this.#engines) each.sendsKeys = this.#retriesCharges && shown.idempotency
    this.#learnedMs = performance.now()
    const rules = rulesShown(own.rules)
    if (JSON.stringify(rules) === JSON.stringify(this.#served)) return
    this.#served = rules
    this.#rules = rules
    this.onRules()
  }
}
