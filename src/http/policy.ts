import { invalidCostError, isCost } from '../api/checks.js'
import type { LimiterStats } from '../api/limiter.js'
import { hearsRefusals, inRoute, publishDenied } from '../core/channels.js'
import { COUNTED, countedNow } from '../core/closing.js'
import { loadParts } from '../core/lazily.js'
import { Refusals, type TopOptions } from '../core/refusals.js'
import { DECIDERS } from '../core/store-calls.js'
import type { TopKey } from '../core/top-keys.js'
import { isKeyString } from '../memory/keys.js'
import { AddressList } from './addresses/address-list.js'
import { isPromise, within } from './caller-promise.js'
import { type ConcludingOptions, Conclusions } from './conclusions.js'
import { deniedDecision } from './denied.js'
import { Failures } from './failures.js'
import type { Framework, HttpRequest } from './framework.js'
import type { AnyKey, AnyLimits, Judging, Keys, Limit, Limits } from './judging.js'
import {
  checkHttpOptions,
  checkKeyTimeout,
  checkOptionsObject,
  isEnforced,
  type RequestOptions,
} from './options.js'
import { Answers } from './problem.js'
import { isNoAddress, RequestKeys } from './request-keys.js'
import { RouteLimits } from './routes/route-limits.js'
import { type RateLimitHandles, type RateLimitStats, type RouteStats, totalOf } from './stats.js'
import { GONE, type Refusal, type Step } from './step.js'

/** An object with fields for the limits that have decided its request. */
type Met = Record<symbol, true | undefined>

/** The option `handler`: answers a refused request in the framework's own way. A group's takes its `GroupDecision`. */
type Handler<Request, Response> = (request: Request, response: Response, decision: never) => unknown

interface DecidingOptions<Request, Response> extends ConcludingOptions<Request, Response> {
  readonly limit?: unknown
}

/** `rateLimit` decides by the limiters of routes. */
const BY_ROUTES: Judging = {
  limitsOf: (options, access, own) => new RouteLimits(options, access, own),
  keysOf: (options, framework) => new RequestKeys(options, framework),
}

/**
 * Decides the requests of one `rateLimit` or `groupLimit`, in any framework. It stays synchronous while the limiter and the
 * functions of the options are, and makes no object, closure or promise for an admitted request beside the
 * decision.
 */
export class Policy<Request, Response> {
  readonly #framework: Framework<Request, Response>
  readonly #options: DecidingOptions<Request, Response>
  readonly #limits: Limits<Response>
  readonly #keys: Keys<Request>
  readonly #allow: AddressList | undefined
  readonly #deny: AddressList | undefined
  readonly #hasGate: boolean
  readonly #answers: Answers<Request>
  readonly #conclusions: Conclusions<Request, Response>
  readonly #failures: Failures<Request>
  readonly #isShadow: boolean
  readonly #timeoutMs: number
  readonly #refusals = new Refusals()
  #denied = 0
  #failed = 0

  /**
   * @param own the names of options that only this framework has
   * @param judging says what decides
   * @throws MillraceError for an option that is wrong
   */
  constructor(
    options: RequestOptions<Request, Response, never>,
    framework: Framework<Request, Response>,
    own: readonly string[] = [],
    judging = BY_ROUTES,
  ) {
    checkOptionsObject(options)
    checkHttpOptions(options as Readonly<Record<string, unknown>>)
    const { allow, deny, skip, ignoreUserAgents } = options
    this.#framework = framework
    this.#options = options as DecidingOptions<Request, Response>
    this.#limits = judging.limitsOf(options, framework, own)
    this.#keys = judging.keysOf(options, framework as Framework<Request, never>)
    this.#allow = allow === undefined ? undefined : new AddressList(allow, 'allow')
    this.#deny = deny === undefined ? undefined : new AddressList(deny, 'deny')
    this.#hasGate = [skip, ignoreUserAgents, allow, deny].some((option) => option !== undefined)
    this.#answers = new Answers<Request>(this.#options)
    this.#failures = new Failures(options.onError)
    this.#conclusions = new Conclusions(
      this.#options,
      framework,
      this.#limits,
      this.#answers,
      this.#failures,
      this.#refusals,
    )
    this.#isShadow = !isEnforced(options)
    this.#timeoutMs = checkKeyTimeout(options.keyTimeoutMs)
    loadParts()
  }

  /** The rules of all routes. A framework adds those that it declares in its own way, for {@link admitBy}. */
  get limits(): Limits<Response> {
    return this.#limits
  }

  /** Decides a request, and sets the headers of its response. Never throws, and the promise never rejects. */
  admit(request: Request, response: Response): Step | Promise<Step> {
    let limit = this.#limits.others
    try {
      if (this.#limits.hasRoutes) {
        const { method } = this.#framework.requestOf(request)
        const found = this.#limits.find(method, this.#framework.pathsOf(request))
        if (Array.isArray(found)) return this.#admitByAll(found, request, response)
        limit = found
      }
    } catch (error) {
      return this.fail(error, request)
    }
    return limit === undefined ? undefined : this.admitBy(limit, request, response)
  }

  /** Judges a request by the rules of a given route. If they have decided it before, it passes: it is charged once. */
  admitBy(limit: Limit<Response>, request: Request, response: Response): Step | Promise<Step> {
    try {
      if ((this.#framework.identityOf(request, response) as Met)[limit.met]) return undefined
      const step = this.#hasGate
        ? this.#enter(limit, request, response)
        : this.#decide(limit, request, response)
      return step instanceof Promise ? step.catch((error) => this.fail(error, request)) : step
    } catch (error) {
      return this.fail(error, request)
    }
  }

  /**
   * Answers a request by the option `handler`, else by `send`. If the handler fails, the answer is 503. A
   * promise does not reject.
   */
  answer(
    refusal: Refusal,
    request: Request,
    response: Response,
    handler: Handler<Request, Response> | undefined,
    send: (response: Response, refusal: Refusal) => void,
  ): void | Promise<void> {
    const { decision } = refusal
    if (handler === undefined || decision === undefined) return send(response, refusal)
    const fail = (error: unknown): void => {
      this.#failures.report(error, request)
      send(response, this.#answers.unavailable(this.#framework.requestOf(request)))
    }
    try {
      const handled = handler(request, response, decision as never)
      if (isPromise(handled)) return Promise.resolve(handled as PromiseLike<void>).catch(fail)
    } catch (error) {
      fail(error)
    }
  }

  /** What a framework's `rateLimit` has beside limiting: the types say what decides. */
  handles<Key = string, Of = LimiterStats>(): RateLimitHandles<Key, Of> {
    const handles = {
      reset: (key: unknown) => this.reset(key),
      stats: () => this.stats(),
      top: (options: TopOptions) => this.top(options),
      close: () => this.close(),
      [DECIDERS]: () => this.deciders,
      [COUNTED]: () => this.counted(),
    }
    return handles as unknown as RateLimitHandles<Key, Of>
  }

  /** The limiters of the routes, each once: routes may share one. */
  get deciders(): readonly Limit<Response>['limiter'][] {
    return [...new Set(this.#limits.all().map(({ limiter }) => limiter))]
  }

  /** The keys, and denied addresses, of the requests that were refused most. */
  async top(options: TopOptions): Promise<TopKey[]> {
    return this.#refusals.top(options)
  }

  /** What became of the requests. */
  async stats(): Promise<RateLimitStats> {
    return this.#statsBy(
      new Map(
        await Promise.all(this.deciders.map(async (limiter) => [limiter, await limiter.stats()] as const)),
      ),
    )
  }

  /** The same, as it is known at this moment; undefined: a limiter of a user's own answers by promises alone. */
  counted(): RateLimitStats | undefined {
    const ofLimiters = new Map<object, LimiterStats>()
    for (const limiter of this.deciders) {
      const stats = countedNow<LimiterStats>(limiter as never)
      if (stats === undefined) return undefined
      ofLimiters.set(limiter, stats)
    }
    return this.#statsBy(ofLimiters)
  }

  /** @param ofLimiters those of groups are `GroupStats` */
  #statsBy(ofLimiters: ReadonlyMap<object, unknown>): RateLimitStats {
    const routes = this.#limits.all().map(({ name, counts, limiter }): [string, RouteStats] => {
      return [name, { ...counts.present(), limiter: ofLimiters.get(limiter) as LimiterStats }]
    })
    const total = totalOf(routes.map(([, stats]) => stats))
    return { ...total, denied: this.#denied, failed: this.#failed, routes: Object.fromEntries(routes) }
  }

  /** Forgets what a key has used, in all routes, and ends its ban. */
  async reset(key: unknown): Promise<void> {
    await Promise.all(this.#limits.all().map((limit) => limit.clear(key)))
    if (isKeyString(key)) this.#conclusions.forget(key)
  }

  /** Closes the limiters that were made from the options. */
  async close(): Promise<void> {
    this.#refusals.close()
    await Promise.all([this.#limits.close(), this.#conclusions.close()])
  }

  /** Decides by one after another, as a chain of limiters would: all must admit the request. */
  #admitByAll(
    limits: readonly Limit<Response>[],
    request: Request,
    response: Response,
  ): Step | Promise<Step> {
    for (const [i, limit] of limits.entries()) {
      const step = this.admitBy(limit, request, response)
      if (step instanceof Promise) {
        return step.then((first) => first ?? this.#admitByAll(limits.slice(i + 1), request, response))
      }
      if (step !== undefined) return step
    }
    return undefined
  }

  #enter(limit: Limit<Response>, request: Request, response: Response): Step | Promise<Step> {
    const raw = this.#framework.requestOf(request)
    if (this.#allow !== undefined || this.#deny !== undefined) {
      const address = this.#keys.addressOf(raw)
      if (!this.#isShadow && this.#deny?.has(address)) {
        this.#denied++
        publishDenied(address, limit.name)
        this.#refusals.note(address)
        this.#conclusions.tell(request, deniedDecision(), address)
        return this.#answers.denied(raw)
      }
      if (this.#allow?.has(address)) return undefined
    }
    const { ignoreUserAgents, skip } = this.#options
    if (ignoreUserAgents !== undefined && isIgnored(raw, ignoreUserAgents)) return undefined
    const isSkipped = within(this.#timeoutMs, skip?.(request) ?? false, 'skip(request)')
    if (isSkipped instanceof Promise) {
      return isSkipped.then((skipped) => (skipped ? undefined : this.#decide(limit, request, response)))
    }
    return isSkipped ? undefined : this.#decide(limit, request, response)
  }

  #decide(limit: Limit<Response>, request: Request, response: Response): Step | Promise<Step> {
    const { cost, limit: ownLimit } = this.#options
    const ms = this.#timeoutMs
    const key = this.#keys.of(request, limit as Limit<never>, ms)
    const units = cost === undefined ? 1 : within(ms, cost(request), 'cost(request)')
    const takesOwn = typeof ownLimit === 'function' && limit.takesOwnLimit
    const own = takesOwn ? within(ms, ownLimit(request), 'limit(request)') : undefined
    if (key instanceof Promise || units instanceof Promise || own instanceof Promise) {
      return Promise.all([key, units, own]).then((values) => this.#check(limit, request, response, ...values))
    }
    return this.#check(limit, request, response, key, units, own)
  }

  /**
   * Charges the request. What a client sends must never choose that nothing limits it. So a request without a
   * usable key is limited by its address, and one without a usable cost costs 1.
   */
  #check(
    limit: Limit<Response>,
    request: Request,
    response: Response,
    key: AnyKey,
    cost: number,
    ownLimit: AnyLimits | undefined,
  ): Step | Promise<Step> {
    const error = this.#keys.failureOf(key) ?? (isCost(cost) ? undefined : invalidCostError(cost))
    const step = error && this.fail(error, request)
    if (step !== undefined) return step
    const checked = this.#keys.usable(key, request)
    const units = isCost(cost) ? cost : 1
    const { limiter } = limit
    const own = ownLimit === undefined && !limit.needsOwnLimit ? undefined : limit.checkOwnLimit(ownLimit)
    ;(this.#framework.identityOf(request, response) as Met)[limit.met] = true
    const decide = () =>
      own === undefined
        ? (limit.atOnce?.checkNow(checked, units) ?? limiter.check(checked, units))
        : limiter.check(checked, units, own)
    const decision = hearsRefusals() ? inRoute(limit.name, decide) : decide()
    if (isPromise(decision)) {
      return Promise.resolve(decision).then((made) =>
        this.#conclusions.conclude(limit, request, response, checked, units, own, made),
      )
    }
    return this.#conclusions.conclude(limit, request, response, checked, units, own, decision)
  }

  /** What happens to a request about which no decision could be made. */
  fail(error: unknown, request: Request): Step {
    // A client must not get past its limit by closing its connection, which then has no address.
    const isGone = this.#framework.hasGone(request)
    if (isGone && isNoAddress(error)) return GONE
    this.#failed++
    const answer = this.#failures.report(error, request)
    if (isGone) return GONE
    if (answer === 'pass' || this.#isShadow) return undefined
    return this.#answers.unavailable(this.#framework.requestOf(request))
  }
}

function isIgnored({ headers }: HttpRequest, patterns: readonly RegExp[]): boolean {
  const agent = headers['user-agent']
  // Unlike `test`, `search` begins at the start each time, also for a pattern with the flag `g`.
  return typeof agent === 'string' && patterns.some((pattern) => agent.search(pattern) >= 0)
}
