/** What decides the requests of a middleware: the limiters of its routes, or a group. */
import type { AsyncLimiter } from '../api/async-limiter.js'
import type { AsyncLimiterGroup } from '../api/async-limiter-group.js'
import type { Limiter } from '../api/limiter.js'
import type { GroupKeys, GroupOptions, LimiterGroup } from '../api/limiter-group.js'
import type { Decision } from '../core/decision.js'
import type { MillraceError } from '../core/errors.js'
import type { Key } from '../memory/keys.js'
import type { IpKey } from './addresses/ip-key.js'
import type { Framework, HttpRequest } from './framework.js'
import type { HeaderAccess } from './headers/header-access.js'
import type { RateLimitHeaders } from './headers/headers.js'
import type { CallLimits } from './options.js'
import type { Paths } from './readings.js'
import type { RouteCounts } from './stats.js'

/** A limiter's key, or those of a group. */
export type AnyKey = Key | GroupKeys

/** Limits of one call: those of a limiter, or of the members of a group. */
export type AnyLimits = CallLimits | NonNullable<GroupOptions['limit']>

/** A limiter or a group: each is called with its own kind of keys. */
export interface Decider {
  check(
    key: AnyKey,
    cost: number,
    options?: { limit?: AnyLimits | undefined },
  ): Decision | PromiseLike<Decision>
  peek(key: AnyKey, cost: number, options?: { limit?: AnyLimits | undefined }): Decision | Promise<Decision>
  refund(decision: Decision): number | PromiseLike<number>
}

/** A limiter on a server that decides some requests at once: see `checkNow` of `RedisLimiter`. */
export interface AtOnce {
  checkNow(key: AnyKey, cost: number): Decision | undefined
}

/** What decides a request, and how its decisions are shown. */
export interface Limit<Response> {
  /** Of the counts: the pattern of the route. */
  readonly name: string
  readonly counts: RouteCounts
  readonly limiter: Decider & (Limiter | AsyncLimiter | LimiterGroup | AsyncLimiterGroup)
  /** The limiter, if it can decide without a promise. */
  readonly atOnce?: AtOnce | undefined
  readonly headers: RateLimitHeaders<Response>
  /** The field of a request that this limit has decided. */
  readonly met: symbol
  /** Whether the option `limit` is a function, for this limit. */
  readonly takesOwnLimit: boolean
  /** Whether that function must return a limit, because the rule has none of its own. */
  readonly needsOwnLimit: boolean
  /** The key by address. */
  keyOf(ipKey: IpKey, request: HttpRequest): Key
  /** The limit of this call. @throws MillraceError if the rule has none of its own either */
  checkOwnLimit(limit: AnyLimits | undefined): { limit?: AnyLimits | undefined }
  /** The key that a decision is told with: of a group, that of the member that decided. */
  toldKey(key: AnyKey, decision: Decision): Key
  /** The names of the rules that refused, if the headers have others than the decision. */
  violatedBy?(decision: Decision): readonly string[]
  /** Forgets what a key has used. @throws MillraceError */
  clear(key: unknown): unknown
}

/** The limits of one middleware. */
export interface Limits<Response> {
  /** That of requests without a route of their own. */
  readonly others: Limit<Response> | undefined
  readonly hasRoutes: boolean
  /** The longest window of the rules when they were added. */
  readonly longestWindowMs: number
  find(method: string | undefined, paths: Paths): Limit<Response> | Limit<Response>[] | undefined
  all(): readonly Limit<Response>[]
  /** Closes the limiters that were made from options. */
  close(): Promise<void>
}

/** Finds what requests are limited by. */
export interface Keys<Request> {
  of(request: Request, limit: Limit<never>, timeoutMs: number): AnyKey | Promise<AnyKey>
  /** The whole address of a request's client. */
  addressOf(raw: HttpRequest): string
  /** The failure of the key functions that have returned this. A key may be any string. */
  failureOf(key: AnyKey): MillraceError | undefined
  /** The key itself if a limiter accepts it, else that of the address. */
  usable(key: AnyKey, request: Request): AnyKey
}

/** How the options of a middleware say what decides. */
export interface Judging {
  /** @throws MillraceError for options that are missing, unknown or wrong */
  limitsOf<Response>(
    options: object,
    access: HeaderAccess<Response>,
    own: readonly string[],
  ): Limits<Response>
  /** @throws MillraceError for an option that is wrong */
  keysOf<Request>(options: object, framework: Framework<Request, never>): Keys<Request>
}
