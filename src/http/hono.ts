import type { Socket } from 'node:net'
import type { Context, MiddlewareHandler } from 'hono'
import type { LimiterStats } from '../api/limiter.js'
import type { GroupStats } from '../api/limiter-group.js'
import type { Decision } from '../core/decision.js'
import { invalid } from '../core/errors.js'
import type { GroupDecision } from '../core/group-decision.js'
import {
  type Answered,
  type Any,
  type FetchHandler,
  type FetchOptions,
  type LimitedFetchHandler,
  limitFetch,
} from './fetch-handler.js'
import { type Flight, flightOf, inFlight } from './flight.js'
import type { Framework, HttpRequest } from './framework.js'
import { BY_GROUP } from './groups/group-limits.js'
import type { GroupLimitOptions, MemberKeys } from './groups/options.js'
import type { Judging } from './judging.js'
import { connectionOf, hasGone, onEnd } from './node-framework.js'
import { checkOptionsObject, type RateLimitOptions, type RequestOptions } from './options.js'
import { Policy } from './policy.js'
import { RateLimitError } from './rate-limit-error.js'
import { type Paths, pathsAfter, pathsWithin, withoutQuery } from './readings.js'
import type { Targets } from './routes/request-path.js'
import type { RateLimitHandles } from './stats.js'
import { GONE, GONE_STATUS, type Refusal } from './step.js'
import { checkResponse, hasHeaders, httpRequestOf, pathOf } from './web-request.js'

export { ipKey } from './addresses/ip-key.js'
export type { FetchHandler, FetchOptions, LimitedFetchHandler, LimitedRequest } from './fetch-handler.js'
export type * from './framework-types.js'
export { RateLimitError } from './rate-limit-error.js'
export { type HeaderPlace, type WriteHeadersOptions, writeHeaders } from './write-headers.js'

/** Where addresses come from, and how refused requests are answered. */
export interface HonoAnswers<D extends Decision> {
  /**
   * Whether a request that does not pass is handed to the framework's own error handling, as a {@link RateLimitError}.
   * The headers are set before. `handler` still answers refusals.
   * @default false: it is answered
   */
  asError?: boolean | undefined
  /**
   * The address of a client, where the server is not `@hono/node-server`: such as
   * `(context) => getConnInfo(context).remote.address` of your runtime.
   * @default the address of Node.js's connection
   */
  address?: ((context: Context) => string | undefined) | undefined
  /**
   * Answers a refused request, in place of `statusCode` and `message`. The headers are set on the context.
   * @default a 429 with a problem document, or 403 for a banned key
   */
  handler?: ((context: Context, decision: D) => Response | Promise<Response>) | undefined
}

/** The options of {@link rateLimit} for Hono. `countIf` is given the context; its `res` is the response. */
export interface HonoOptions extends RateLimitOptions<Context, Context>, HonoAnswers<Decision> {}

/** The options of {@link groupLimit} for Hono. */
export interface HonoGroupOptions extends GroupLimitOptions<Context, Context>, HonoAnswers<GroupDecision> {}

/** Limits requests: middleware for `app.use` or a route. */
export interface RateLimiter<Key = string, Of = LimiterStats>
  extends MiddlewareHandler,
    RateLimitHandles<Key, Of> {}

/** The variable of a context with its decision, and the fields with its flight and the headers that were set. */
const DECISION = 'rateLimit'
const FLIGHT = Symbol('millrace flight')
const HEADERS = Symbol('millrace headers')

/** A context of which nothing is known but what all contexts have. */
interface Extended {
  [FLIGHT]?: Flight
  [HEADERS]?: Map<string, string>
}

/** What `@hono/node-server` hands to an app. */
interface NodeBindings {
  readonly incoming?: HttpRequest
  readonly outgoing?: Parameters<typeof onEnd>[0]
}

declare module 'hono' {
  interface ContextVariableMap {
    /** The decision about this request; undefined if it was not limited. */
    rateLimit: Decision | undefined
  }
}

/** A path has no query any more, but may have a `?` or `#` that was encoded. */
const readAsIs = (path: string): Targets => [path.replace(/[?#]/g, encodeURIComponent)]

/** What the app of the limiter is mounted at by `route`, or its `basePath`. */
function baseOf({ matchedRoutes, routeIndex }: Context['req']): string {
  const { basePath, path = '/' } = matchedRoutes[routeIndex] ?? {}
  return basePath ?? path.replace(/\/?\*$/, '') // older versions tell the pattern of the middleware alone
}

class HonoFramework implements Framework<Context, Context> {
  readonly #addressOf: ((context: Context) => string | undefined) | undefined
  /** What to call when a response is made, where nothing says when it has been sent. */
  readonly #ends = new WeakMap<Context, (() => void)[]>()

  constructor(addressOf: ((context: Context) => string | undefined) | undefined) {
    this.#addressOf = addressOf
  }

  requestOf(context: Context): HttpRequest {
    const { incoming } = (context.env ?? {}) as NodeBindings
    if (this.#addressOf === undefined && incoming !== undefined) return incoming
    return httpRequestOf(context.req.raw, 'address(context)', () => this.#addressOf?.(context))
  }

  identityOf(context: Context): object {
    const { incoming } = (context.env ?? {}) as NodeBindings
    return incoming ?? flightIn(context)
  }

  /** The router reads `path`, which Hono or the option `getPath` of the app has made of the URL. */
  pathsOf({ req }: Context): Paths {
    const paths = pathsAfter(req.path, withoutQuery(pathOf(req.raw)), readAsIs)
    const base = baseOf(req)
    return base === '/' ? paths : pathsWithin(base, paths, '//')
  }

  keep(context: Context, _: Context, decision: Decision): void {
    context.set(DECISION, decision)
  }

  kept(context: Context): Decision | undefined {
    return context.get(DECISION)
  }

  set(context: Context, name: string, value: string): void {
    context.header(name, value)
    const own = context as Extended
    own[HEADERS] ??= new Map()
    own[HEADERS].set(name, value)
  }

  get(context: Context, name: string): string | undefined {
    return (context as Extended)[HEADERS]?.get(name) ?? context.res.headers.get(name) ?? undefined
  }

  hasGone(context: Context): boolean {
    const { incoming } = (context.env ?? {}) as NodeBindings
    return incoming === undefined ? context.req.raw.signal.aborted : hasGone(incoming)
  }

  onEnd(context: Context, _: Context, done: (isSent: boolean) => void): void {
    const { outgoing } = (context.env ?? {}) as NodeBindings
    if (outgoing !== undefined) {
      onEnd(outgoing, done)
      return
    }
    // Outside of Node.js nothing says when a response has been sent, only that the client has gone.
    const { signal } = context.req.raw
    if (signal.aborted) {
      done(false)
      return
    }
    const abort = () => done(false)
    signal.addEventListener('abort', abort, { once: true })
    const ends = this.#ends.get(context) ?? []
    this.#ends.set(context, ends)
    ends.push(() => {
      signal.removeEventListener('abort', abort)
      if (!signal.aborted) done(true)
    })
  }

  connectionOf({ env }: Context): Socket | undefined {
    const { outgoing } = (env ?? {}) as NodeBindings
    return outgoing && connectionOf(outgoing)
  }

  /** The response is made. */
  end(context: Context): void {
    for (const end of this.#ends.get(context) ?? []) end()
    this.#ends.delete(context)
  }
}

/** The flight of a context, also if its `Request` has been replaced. */
function flightIn(context: Context): Flight {
  const own = context as Extended
  own[FLIGHT] ??= flightOf(context.req.raw)
  return own[FLIGHT]
}

function send(context: Context, { status, contentType, body }: Refusal): void {
  const shown = context.req.method === 'HEAD' ? null : body
  context.res = context.newResponse(shown, status as 429, { 'Content-Type': contentType })
}

/** Hands a refusal to `app.onError`. */
function fail(context: Context, refusal: Refusal): never {
  throw new RateLimitError(refusal, (context as Extended)[HEADERS])
}

/** A handler of Hono may return a response of its own, which has not the headers of the context. */
function addHeaders(context: Context): void {
  const { [HEADERS]: headers } = context as Extended
  if (headers === undefined || !hasHeaders(context.res)) return
  for (const [name, value] of headers) {
    if (context.res.headers.get(name) !== value) context.header(name, value)
  }
}

/**
 * Limits the requests of a Hono app (4), by the client's address unless `key` says otherwise. The decision is
 * at `context.get('rateLimit')`. On Node.js the address comes from `@hono/node-server`; elsewhere from the
 * option `address`.
 * @param options the rule (`limit` and `window` at least), or `rules`, a `limiter`, or `routes`
 * @returns the middleware
 * @throws {MillraceError} the errors of `createLimiter`, and `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import { Hono } from 'hono'
 * import { rateLimit } from 'millrace/hono'
 *
 * const app = new Hono()
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 * ```
 */
export function rateLimit(options: HonoOptions): RateLimiter
/**
 * Limits a function of web requests.
 * @deprecated It is `rateLimit` of `millrace/web`, which does the same.
 * @param options the rule (`limit` and `window` at least), or `rules`, a `limiter`, or `routes`
 * @param fetch answers the requests that pass. It is also given what the server hands on beside the request
 * @returns the limited function
 */
export function rateLimit<Incoming extends Request = Request, Info = Any, Answer extends Answered = Response>(
  options: FetchOptions<Incoming, Info>,
  fetch: FetchHandler<Incoming, Info, Answer>,
): LimitedFetchHandler<Incoming, Info, Answer>
export function rateLimit(
  options: HonoOptions | FetchOptions,
  fetch?: FetchHandler,
): RateLimiter | LimitedFetchHandler {
  return fetch === undefined ? limitHono(options as HonoOptions) : limitFetch(options as FetchOptions, fetch)
}

/**
 * Limits the requests of a Hono app (4) by a group: a limiter for each of several keys, such as the account and the client's
 * address. It passes if all members admit it, else none is charged. A refusal's status, headers and problem document are
 * those of the member that refused.
 * @param options `members`: limiters or rules by names of your choice, each with a key of the context
 * @returns the middleware. The decision is at `context.get('rateLimit')`
 * @throws {MillraceError} the errors of `createLimiter` and of `group`, and `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import { Hono } from 'hono'
 * import { groupLimit } from 'millrace/hono'
 *
 * const app = new Hono()
 * app.use('/login', groupLimit({
 *   members: {
 *     account: { limit: 5, window: '15m', key: async ({ req }) => (await req.json()).account },
 *     address: { limit: 20, window: '15m' },
 *   },
 * }))
 * ```
 */
export function groupLimit(options: HonoGroupOptions): RateLimiter<MemberKeys, GroupStats> {
  return limitHono(options, BY_GROUP)
}

function limitHono<Key, Of>(
  options: RequestOptions<Context, Context, never> & HonoAnswers<never>,
  judging?: Judging,
): RateLimiter<Key, Of> {
  checkOptionsObject(options)
  const { address, handler, asError = false } = options
  checkAddress(address)
  const framework = new HonoFramework(address)
  const policy = new Policy(options, framework, ['address', 'asError'], judging)
  const own =
    handler &&
    (async (context: Context, _: Context, decision: never) => {
      context.res = checkResponse(await handler(context, decision))
    })

  const limit = async (context: Context, next: () => Promise<void>): Promise<void> => {
    const step = await policy.admit(context, context)
    if (step === undefined) await next()
    else if (step === GONE) context.res = new Response(null, { status: GONE_STATUS })
    else await policy.answer(step, context, context, own, asError ? fail : send)
    addHeaders(context)
    framework.end(context)
  }
  const limited: MiddlewareHandler = (context, next) =>
    inFlight(flightIn(context), () => limit(context, next))
  return Object.assign(limited, policy.handles<Key, Of>())
}

function checkAddress(address: unknown): void {
  if (address !== undefined && typeof address !== 'function') throw invalid('address', address, 'a function')
}
