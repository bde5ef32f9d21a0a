import {
  type ExecutionContext,
  Inject,
  Injectable,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common'
import { ApplicationConfig, MetadataScanner, ModulesContainer, Reflector } from '@nestjs/core'
import { COUNTED } from '../../core/closing.js'
import { invalid } from '../../core/errors.js'
import type { TopOptions } from '../../core/refusals.js'
import { DECIDERS } from '../../core/store-calls.js'
import type { TopKey } from '../../core/top-keys.js'
import { isPromise } from '../caller-promise.js'
import { answeredBy } from '../node-framework.js'

import { Policy } from '../policy.js'
import { RouteGroups } from '../routes/route-groups.js'
import type { RouteLimit } from '../routes/route-limits.js'
import type { RateLimitStats } from '../stats.js'
import { GONE, type Step } from '../step.js'
import { type Decorated, rulesOf } from './decorators.js'
import { exceptionFor } from './exception.js'
import { type Call, NestFramework, type NestRequest, type NestResponse } from './framework.js'
import { callOptions, type RateLimitModuleOptions } from './options.js'
import { transportExceptionFor } from './transport-exception.js'

/** The token of the options of `RateLimitModule`. */
export const RATE_LIMIT_OPTIONS = 'MILLRACE_RATE_LIMIT_OPTIONS'

/** A handler without a limit. */
const SKIPPED = Symbol('skipped')
/** What a handler is limited by; undefined for the rules of the module. */
type HandlerLimit = RouteLimit<Call> | typeof SKIPPED | undefined

/** Decides requests by the options of the module, and by the decorators of controllers and handlers. */
export class RateLimitService implements OnModuleInit, OnApplicationShutdown {
  static {
    Injectable()(RateLimitService)
    Inject(RATE_LIMIT_OPTIONS)(RateLimitService, undefined, 0)
    Inject(ModulesContainer)(RateLimitService, undefined, 1)
    Inject(ApplicationConfig)(RateLimitService, undefined, 2)
  }

  readonly #options: RateLimitModuleOptions
  readonly #modules: ModulesContainer
  readonly #reflector = new Reflector()
  readonly #policy: Policy<Call, Call>
  readonly #groups: RouteGroups<Call>
  /** By controller, then by handler: controllers inherit handlers. */
  readonly #limits = new WeakMap<Decorated, WeakMap<Decorated, HandlerLimit>>()

  /**
   * @param options the options of the module
   * @param modules all modules of the app
   * @param config the global prefix of the app
   */
  constructor(options: RateLimitModuleOptions, modules: ModulesContainer, config?: ApplicationConfig) {
    this.#options = options
    this.#modules = modules
    this.#policy = new Policy(
      callOptions(options),
      new NestFramework(() => config?.getGlobalPrefix() ?? ''),
      ['getRequestResponse'],
    )
    this.#groups = new RouteGroups(this.#policy.limits)
  }

  /** Makes the limiters of all decorators, so that wrong rules fail when the app starts. */
  onModuleInit(): void {
    const scanner = new MetadataScanner()
    for (const { controllers, providers } of this.#modules.values()) {
      for (const { metatype } of [...controllers.values(), ...providers.values()]) {
        if (typeof metatype !== 'function' || !metatype.prototype) continue
        for (const name of scanner.getAllMethodNames(metatype.prototype)) {
          this.#limitOf(metatype.prototype[name], metatype as Decorated)
        }
      }
    }
  }

  /**
   * Decides a call, as the guard does.
   * @param context the call of a handler
   * @returns true if it passes, or a promise of it. If `handler` has answered the request, or its connection has
   * closed, the promise stays pending: nothing is left to do for it
   * @throws {RateLimitException} if it does not pass, or what `handler` throws. The promise rejects with the same
   */
  admit(context: ExecutionContext): boolean | Promise<boolean> {
    const limit = this.#limitOf(context.getHandler(), context.getClass())
    if (limit === SKIPPED) return true
    let call: Call | undefined
    try {
      call = this.#callOf(context)
    } catch (error) {
      const unknown = { request: {}, response: undefined, context, identity: {} }
      return this.#finish(this.#policy.fail(error, unknown), unknown)
    }
    if (call === undefined) return true
    const policy = this.#policy
    const step = limit === undefined ? policy.admit(call, call) : policy.admitBy(limit, call, call)
    if (step === undefined) return true
    return step instanceof Promise
      ? step.then((later) => this.#finish(later, call))
      : this.#finish(step, call)
  }

  /**
   * Forgets what a key has used, by all rules of the module and of decorators, and ends its ban.
   * @param key the key
   */
  reset(key: string): Promise<void> {
    return this.#policy.reset(key)
  }

  /**
   * Returns what became of the requests of this thread, by route and by rule: `default` are the rules of the module, and
   * `Controller.handler` those of a decorator.
   * @throws {MillraceError} (rejects) `ERR_MILLRACE_CLOSED`
   */
  stats(): Promise<RateLimitStats> {
    return this.#policy.stats()
  }

  /** @internal */
  [DECIDERS](): readonly object[] {
    return this.#policy.deciders
  }

  /** @internal */
  [COUNTED](): RateLimitStats | undefined {
    return this.#policy.counted()
  }

  /** Returns the keys of the requests that were refused most: see {@link Limiter.top}. */
  top(options: TopOptions): Promise<TopKey[]> {
    return this.#policy.top(options)
  }

  /** Closes the limiters that were made from options. A `limiter` of your own stays open. */
  onApplicationShutdown(): Promise<void> {
    return this.#policy.close()
  }

  #limitOf(handler: Decorated, controller: Decorated): HandlerLimit {
    let limits = this.#limits.get(controller)
    if (limits === undefined) {
      limits = new WeakMap()
      this.#limits.set(controller, limits)
    }
    if (limits.has(handler)) return limits.get(handler)
    const limit = this.#makeLimit(handler, controller)
    limits.set(handler, limit)
    return limit
  }

  #makeLimit(handler: Decorated, controller: Decorated): HandlerLimit {
    const rules = rulesOf(this.#reflector, handler, controller)
    if (rules === false) return SKIPPED
    const name = `${controller.name}.${handler.name}`
    return rules && this.#groups.find(rules, name, `@Throttle of ${name}`)
  }

  /** The request and response of a call; undefined if it is not limited. */
  #callOf(context: ExecutionContext): Call | undefined {
    const request: NestRequest = context.getArgByIndex(0)
    // Nest calls a context 'http' by default, also one of a transport that it does not know.
    if (context.getType() === 'http' && isHttp(request)) {
      const response: NestResponse = context.getArgByIndex(1)
      const identity = answeredBy(request.raw ?? request, response?.raw ?? response)
      return { request, response, context, identity }
    }
    const found = this.#options.getRequestResponse?.(context) ?? {}
    if (isPromise(found)) {
      Promise.resolve(found).catch(() => {}) // the error below says enough
      throw invalid('getRequestResponse(context)', found, 'an object with req, and no promise')
    }
    const { req, res } = found as { req?: NestRequest; res?: NestResponse }
    if (typeof req !== 'object' || req === null) return undefined
    // A request of GraphQL may call several handlers, with arguments of their own.
    return { request: req, response: res ?? undefined, context, identity: context.getArgs() }
  }

  #finish(step: Step, { response, context }: Call): boolean | Promise<boolean> {
    if (step === undefined) return true
    if (step === GONE) return pending()
    const { handler } = this.#options
    if (handler !== undefined && step.decision !== undefined) {
      const handled = handler(context, step.decision)
      return handled instanceof Promise ? handled.then(pending) : pending()
    }
    throw context.getType() === 'http'
      ? exceptionFor(step, response)
      : transportExceptionFor(step, context.getType())
  }
}

/** A request of Express or Fastify has headers. */
const isHttp = (request: NestRequest): boolean => (request?.raw ?? request)?.headers !== undefined

/** For Nest, what `next` is that is never called. A new promise each time: one for all would keep all requests. */
const pending = (): Promise<boolean> => new Promise(() => {})
