/** The options of every `rateLimit`, and their checks. */

import type { AsyncLimiter } from '../api/async-limiter.js'
import type { Limiter } from '../api/limiter.js'
import type { EngineChoice, TableOptions } from '../api/options.js'
import type { Decision } from '../core/decision.js'
import type { Duration } from '../core/duration.js'
import { parseDuration } from '../core/duration.js'
import { invalid } from '../core/errors.js'
import { refuseUnknown } from '../core/option-names.js'
import type { RuleOptions } from '../core/rule-options.js'
import type { Size } from '../core/sizes.js'
import type { TrustProxy } from './addresses/trust-proxy.js'
import type { Standard } from './headers/headers.js'

/** A value, or a promise of it. */
export type Awaitable<T> = T | Promise<T>

/** The limits of one call: one limit, or with several rules an object with limits by their names. */
export type CallLimits = Size | 'unlimited' | Readonly<Record<string, Size | 'unlimited'>>

/** Where the counts live and where decisions run: the options of `createLimiter` beside its rules. */
export interface EngineOptions extends Omit<TableOptions, 'engine'>, EngineChoice<'inline' | 'pool'> {}

/** The option `delay`. */
export interface DelayOptions {
  /** The units in a window that are served at once: an integer of 0 or more. */
  after: number
  /** How much longer each further request waits. */
  ms: Duration
  /**
   * The longest wait.
   * @default '30s'
   */
  max?: Duration | undefined
  /**
   * How many requests wait at once, of each key and in all: integers of 1 or more. A number is that of each key.
   * @default { key: 1_000, all: 10_000 }
   */
  maxDelayed?: number | { key?: number; all?: number } | undefined
}

/** The rules of a route: one rule, or `rules`, or a limiter. */
export interface RouteRules extends Partial<Omit<RuleOptions, 'shadow'>> {
  /** Several rules at once, in place of `limit` and `window`. */
  rules?: readonly RuleOptions[] | undefined
  /** A limiter that exists, in place of rules. */
  limiter?: Limiter | AsyncLimiter | undefined
}

/**
 * What `rateLimit` and `groupLimit` have in common. `Request` and `Response` are what the framework hands to your
 * functions. A function that may return a promise is awaited; without a promise, and with limiters that decide inline,
 * the middleware stays synchronous.
 */
export interface RequestOptions<Request, Response, D extends Decision = Decision> {
  /**
   * How far the headers `X-Forwarded-For` are trusted, for the default key and for `allow` and `deny`: see
   * {@link ipKey}.
   * @default false: the address of the connection
   */
  trustProxy?: TrustProxy | undefined
  /**
   * How many bits of an IPv6 address the default key has: 32 to 128.
   * @default 56
   */
  ipv6Subnet?: number | undefined
  /**
   * Your own prefixes of NAT64, such as `['64:ff9b:1::/48']`: see {@link ipKey}. For the default key.
   * @default [], beside `64:ff9b::/96`
   */
  nat64Prefixes?: readonly string[] | undefined
  /**
   * The units that this request costs: an integer of 0 or more.
   * @default 1
   */
  cost?: ((request: Request) => Awaitable<number>) | undefined
  /**
   * How many milliseconds to wait for a promise of `key`, `cost`, `limit`, `skip` and `countIf`: above 0, or
   * `Infinity`. Then the function has failed, with `ERR_MILLRACE_FUNCTION_TIMEOUT`: see `onError`.
   * @default 5_000
   */
  keyTimeoutMs?: number | undefined
  /** Whether to pass this request on without a decision. */
  skip?: ((request: Request) => Awaitable<boolean>) | undefined
  /** Addresses and ranges, such as `'10.0.0.0/8'`, that are not limited. */
  allow?: readonly string[] | undefined
  /** Addresses and ranges that are refused with status 403. */
  deny?: readonly string[] | undefined
  /**
   * Requests whose header `User-Agent` matches one of these are not limited. Any client can send any header:
   * use it for what only looks, such as a health check.
   */
  ignoreUserAgents?: readonly RegExp[] | undefined
  /**
   * The status of a refusal.
   * @default 429
   */
  statusCode?: number | undefined
  /**
   * The body of a refusal: text, or an object for JSON, or a function that returns one of them.
   * @default a problem document (`application/problem+json`), or text or HTML by the header `Accept`
   */
  message?: string | object | ((request: Request, decision: D) => string | object) | undefined
  /**
   * Is called for each request over its limit, for logs and metrics; also with `shadow` and `delay`, and for one from an
   * address of `deny`, whose decision has the rule `'deny'`. A refusal because a store does not answer goes to
   * `onError` instead. `key` is what is limited, as clients have sent it: any characters may be in it. For `deny` it is the
   * address.
   */
  onLimited?: ((request: Request, decision: D, key: string) => void) | undefined
  /**
   * Whether a response counts. The request is charged before it is handled, and the charge is given back if
   * this returns false: `(response) => response.statusCode >= 400` counts failures only. A request whose
   * connection closes before its response is sent stays charged.
   */
  countIf?: ((response: Response) => boolean) | undefined
  /**
   * Decides and counts, but refuses nothing and sets no headers. `onLimited` is called for the requests that
   * would have been refused.
   * @default false
   */
  shadow?: boolean | undefined
  /**
   * What happens to a request when no decision could be made, because a function of these options threw or a
   * worker was lost, or when a limiter refuses it because its store does not answer (`decision.source` is
   * `'outage'`): `'fail'` answers 503, `'pass'` passes it on. A function is given the error, whose `code` is
   * `'ERR_MILLRACE_OUTAGE'` for a store (`'ERR_MILLRACE_CONFIG_STORE'` with `onMiss: 'refuse'`) and whose `cause` says why, and returns one of the two. It is also given the errors of functions
   * that are called after the decision, such as `onLimited`, `message` and `countIf`; these do not change the
   * decision. With `shadow`, each request passes.
   * @default 'fail', with a warning of the process at most once a minute
   */
  onError?: 'pass' | 'fail' | ((error: unknown, request: Request) => 'pass' | 'fail') | undefined
  /**
   * The form of the response's headers; false for none except `Retry-After`.
   * @default 'draft-11', the IETF draft `draft-ietf-httpapi-ratelimit-headers-11`
   */
  standard?: Standard | undefined
  /**
   * Whether to name the headers in `Access-Control-Expose-Headers`, so that pages of other origins can read
   * them.
   * @default false
   */
  exposeHeaders?: boolean | undefined
}

/** The options of `rateLimit`, which are the same in every framework. */
export interface RateLimitOptions<Request, Response>
  extends EngineOptions,
    Omit<RouteRules, 'limit'>,
    RequestOptions<Request, Response> {
  /**
   * How many units a key may use in any window. As a function: the limit of this request, such as that of the
   * customer's plan; all limits of a key count the same units. It may
   * return 0, which refuses the request, and `Infinity` or `'unlimited'`, which passes it uncounted. With several rules or a `limiter`, the function
   * may return an object with limits by the names of rules, or undefined for the limits of the rules.
   */
  limit?: Size | ((request: Request) => Awaitable<CallLimits | undefined>) | undefined
  /**
   * The key that is limited: a string of 1 to 65,536 characters. With an empty or a longer one, a request is
   * limited by its client's address; if that is not known, all such requests count together.
   * @default `ipKey()`: the client's address
   */
  key?: ((request: Request) => Awaitable<string>) | undefined
  /**
   * Rules of their own for routes, in place of the others: `'POST /login': { limit: 5, window: '15m' }`. The
   * method may be left out. A path may have parameters (`/users/:id`), one at most between two slashes, and
   * may end in `*`. Of several that match, the one with the longest fixed beginning holds. `false`: not
   * limited. In a mount, such as a router at `/api`, a pattern is written for the whole path or for the path in
   * the mount. A path that routers may read differently counts under the rules of each reading.
   */
  routes?: Readonly<Record<string, RouteRules | false>> | undefined
  /**
   * Bans a key for the time `for` once it was refused `after` times in a window: status 403.
   * @default refused keys are not banned
   */
  ban?: { after: number; for: Duration } | undefined
  /**
   * Slows down instead of refusing: above `after` units, each request waits `ms` longer than the one before,
   * up to `max`, 30 s unless set. At most `maxDelayed` requests wait: of each key 1,000, in all 10,000 unless set;
   * a number is that of each key. Those beyond are refused. So are those of a key that is blocked, and those
   * that could never be admitted. It does not go with `ban`. The units over the limit are counted in this
   * process.
   * @default requests over the limit are refused
   */
  delay?: DelayOptions | undefined
}

/** The names of the options that every framework has, beside those of a limiter. */
export const HTTP_OPTIONS: readonly string[] = [
  'limiter',
  'key',
  'trustProxy',
  'ipv6Subnet',
  'nat64Prefixes',
  'cost',
  'keyTimeoutMs',
  'skip',
  'allow',
  'deny',
  'ignoreUserAgents',
  'routes',
  'statusCode',
  'message',
  'handler',
  'onLimited',
  'countIf',
  'ban',
  'delay',
  'shadow',
  'onError',
  'standard',
  'exposeHeaders',
]

const FUNCTIONS = ['key', 'cost', 'skip', 'handler', 'onLimited', 'countIf'] as const
const DEFAULT_MAX_DELAY_MS = 30_000
/** A waiting request takes about 4 KB. */
const DEFAULT_MAX_DELAYED = { key: 1_000, all: 10_000 }
const DEFAULT_KEY_TIMEOUT_MS = 5_000

/** Members of no options: of a request of Node.js, and of the context of Koa and of Hono. */
const OF_REQUESTS = ['rawHeaders', 'req']

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` for options that are missing, or a request in place of them */
export function checkOptionsObject(options: unknown): asserts options is object {
  const expected = 'an object with at least limit and window, or rules, limiter or routes'
  if (typeof options !== 'object' || options === null) throw invalid('options', options, expected)
  // After `app.use(rateLimit)` the framework hands on a request, or its context.
  if (OF_REQUESTS.some((name) => name in options))
    throw invalid(
      'options',
      'a request',
      `${expected}, as in app.use(rateLimit({ limit: 100, window: '1m' }))`,
    )
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` for an option that is not as its type says */
export function checkHttpOptions(options: Readonly<Record<string, unknown>>): void {
  for (const name of FUNCTIONS) {
    const value = options[name]
    if (value !== undefined && typeof value !== 'function') throw invalid(name, value, 'a function')
  }
  const { ignoreUserAgents, statusCode, message, onError, shadow, exposeHeaders, asError, ban, delay } =
    options
  if (ban !== undefined && delay !== undefined) {
    throw invalid('ban', ban, 'no value beside delay, which refuses no request for being over its limit')
  }
  if (ignoreUserAgents !== undefined && !isListOfPatterns(ignoreUserAgents)) {
    throw invalid('ignoreUserAgents', ignoreUserAgents, 'an array of regular expressions')
  }
  if (statusCode !== undefined && !isErrorStatus(statusCode)) {
    throw invalid('statusCode', statusCode, 'an integer from 400 to 599')
  }
  if (message !== undefined && !['string', 'object', 'function'].includes(typeof message)) {
    throw invalid('message', message, 'a string, an object or a function')
  }
  if (onError !== undefined && onError !== 'pass' && onError !== 'fail' && typeof onError !== 'function') {
    throw invalid('onError', onError, "'pass', 'fail' or a function")
  }
  for (const [name, value] of Object.entries({ shadow, exposeHeaders, asError })) {
    if (value !== undefined && typeof value !== 'boolean') throw invalid(name, value, 'a boolean')
  }
}

/** Whether the middleware refuses what is over the limit. */
export const isEnforced = ({ shadow }: { readonly shadow?: boolean | undefined }): boolean => shadow !== true

/** `keyTimeoutMs`, checked. */
export function checkKeyTimeout(ms: unknown = DEFAULT_KEY_TIMEOUT_MS): number {
  if (typeof ms === 'number' && ms > 0) return ms
  throw invalid('keyTimeoutMs', ms, 'milliseconds above 0, or Infinity')
}

/** `ban`, checked, in milliseconds. */
export function checkBan(ban: unknown): { readonly after: number; readonly forMs: number } | undefined {
  if (ban === undefined) return undefined
  const { after, for: duration } = objectOf(ban, 'ban', ['after', 'for'])
  if (!Number.isInteger(after) || (after as number) < 1) {
    throw invalid('ban.after', after, 'an integer of 1 or more')
  }
  const forMs = duration === Number.POSITIVE_INFINITY ? duration : parseDuration(duration, 'ban.for')
  return { after: after as number, forMs: forMs as number }
}

/** `delay`, checked. */
export interface DelayNumbers {
  readonly after: number
  readonly ms: number
  readonly maxMs: number
  /** The most requests that wait, of one key and in all. */
  readonly mostOfKey: number
  readonly mostInAll: number
}

export function checkDelay(delay: unknown): DelayNumbers | undefined {
  if (delay === undefined) return undefined
  const names = ['after', 'ms', 'max', 'maxDelayed']
  const { after, ms, max = DEFAULT_MAX_DELAY_MS, maxDelayed = {} } = objectOf(delay, 'delay', names)
  if (!Number.isInteger(after) || (after as number) < 0) {
    throw invalid('delay.after', after, 'an integer of 0 or more')
  }
  const option = 'delay.maxDelayed'
  const most =
    typeof maxDelayed === 'number' ? { key: maxDelayed } : objectOf(maxDelayed, option, ['key', 'all'])
  const mostOfKey = checkPlaces(most.key ?? DEFAULT_MAX_DELAYED.key, `${option}.key`)
  const mostInAll = checkPlaces(most.all ?? Math.max(mostOfKey, DEFAULT_MAX_DELAYED.all), `${option}.all`)
  return {
    after: after as number,
    ms: parseDuration(ms, 'delay.ms'),
    maxMs: parseDuration(max, 'delay.max'),
    mostOfKey,
    mostInAll,
  }
}

function checkPlaces(places: unknown, option: string): number {
  if (Number.isInteger(places) && (places as number) >= 1) return places as number
  throw invalid(option, places, 'an integer of 1 or more')
}

function objectOf(value: unknown, option: string, names: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) {
    throw invalid(option, value, `an object with ${names.join(', ')}`)
  }
  refuseUnknown(value, names, (name, expected) => invalid(option, name, expected))
  return value as Record<string, unknown>
}

const isListOfPatterns = (value: unknown): boolean =>
  Array.isArray(value) && value.every((pattern) => pattern instanceof RegExp)

const isErrorStatus = (status: unknown): boolean =>
  Number.isInteger(status) && (status as number) >= 400 && (status as number) <= 599
