import {
  type ExecutionContext,
  Inject,
  Injectable,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common'
import { ApplicationConfig, MetadataScanner, ModulesContainer, Reflector } from '@nestjs/core'
import { COUNTED } from '../../core/closing.js'
import type { TopOptions } from '../../core/refusals.js'
import { DECIDERS } from '../../core/store-calls.js'
import type { TopKey } from '../../core/top-keys.js'
import type { Limit } from '../judging.js'
import { Policy } from '../policy.js'
import { RouteGroups } from '../routes/route-groups.js'
import type { RouteLimits } from '../routes/route-limits.js'
import type { RateLimitStats } from '../stats.js'
import { Calls } from './calls.js'
import { type Decorated, rulesOf } from './decorators.js'
import { type Call, NestFramework } from './framework.js'
import { callOptions, type RateLimitModuleOptions } from './options.js'

/** The token of the options of `RateLimitModule`. */
export const RATE_LIMIT_OPTIONS = 'MILLRACE_RATE_LIMIT_OPTIONS'

/** A handler without a limit. */
const SKIPPED = Symbol('skipped')
/** What a handler is limited by; undefined for the rules of the module. */
type HandlerLimit = Limit<Call> | typeof SKIPPED | undefined

/** Decides requests by the options of the module, and by the decorators of controllers and handlers. */
export class RateLimitService implements OnModuleInit, OnApplicationShutdown {
  static {
    Injectable()(RateLimitService)
    Inject(RATE_LIMIT_OPTIONS)(RateLimitService, undefined, 0)
    Inject(ModulesContainer)(RateLimitService, undefined, 1)
    Inject(ApplicationConfig)(RateLimitService, undefined, 2)
  }

  readonly #modules: ModulesContainer
  readonly #reflector = new Reflector()
  readonly #policy: Policy<Call, Call>
  readonly #calls: Calls
  readonly #groups: RouteGroups<Call>
  /** By controller, then by handler: controllers inherit handlers. */
  readonly #limits = new WeakMap<Decorated, WeakMap<Decorated, HandlerLimit>>()

  /**
   * @param options the options of the module
   * @param modules all modules of the app
   * @param config the global prefix of the app
   */
  constructor(options: RateLimitModuleOptions, modules: ModulesContainer, config?: ApplicationConfig) {
    this.#modules = modules
    this.#policy = new Policy(
      callOptions(options),
      new NestFramework(() => config?.getGlobalPrefix() ?? ''),
      ['getRequestResponse'],
    )
    this.#calls = new Calls(this.#policy, options)
    this.#groups = new RouteGroups(this.#policy.limits as RouteLimits<Call>)
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
    return this.#calls.admit(context, limit)
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
}
