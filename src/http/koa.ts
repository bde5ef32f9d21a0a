import type { Middleware, ParameterizedContext } from 'koa'
import type { LimiterStats } from '../api/limiter.js'
import type { GroupStats } from '../api/limiter-group.js'
import type { Decision } from '../core/decision.js'
import type { GroupDecision } from '../core/group-decision.js'
import type { Framework } from './framework.js'
import { BY_GROUP } from './groups/group-limits.js'
import type { GroupLimitOptions, MemberKeys } from './groups/options.js'
import { DEFAULT_STANDARD, EXPOSE, exposedHeaders, type Standard } from './headers/headers.js'
import { connectionOf, hasGone, onEnd } from './node-framework.js'
import type { RateLimitOptions } from './options.js'
import { Policy } from './policy.js'
import { RateLimitError } from './rate-limit-error.js'
import { type Paths, pathsAfter, pathsWithin } from './readings.js'
import { pathsByParse } from './routes/request-path.js'
import type { RateLimitHandles } from './stats.js'
import { GONE, GONE_STATUS, type Refusal, type Step } from './step.js'

export { ipKey } from './addresses/ip-key.js'
export type * from './framework-types.js'
export { RateLimitError } from './rate-limit-error.js'
export { type HeaderPlace, type WriteHeadersOptions, writeHeaders } from './write-headers.js'

/** How refused requests are answered. */
export interface KoaAnswers<D extends Decision> {
  /**
   * Whether a request that does not pass is handed to the framework's own error handling, as a {@link RateLimitError}.
   * The headers are set before. `handler` still answers refusals.
   * @default false: it is answered
   */
  asError?: boolean | undefined
  /**
   * Answers a refused request, in place of `statusCode` and `message`. The headers are set.
   * @default a 429 with a problem document, or 403 for a banned key
   */
  handler?: ((context: ParameterizedContext, decision: D) => unknown) | undefined
}

/** The options of {@link rateLimit} for Koa. */
export interface KoaOptions
  extends RateLimitOptions<ParameterizedContext, ParameterizedContext>,
    KoaAnswers<Decision> {}

/** The options of {@link groupLimit} for Koa. */
export interface KoaGroupOptions
  extends GroupLimitOptions<ParameterizedContext, ParameterizedContext>,
    KoaAnswers<GroupDecision> {}

/** Limits requests: middleware for `app.use` or a router. */
export interface RateLimiter<Key = string, Of = LimiterStats> extends Middleware, RateLimitHandles<Key, Of> {}

/** What `@koa/router` and its predecessors add to a context. */
interface Routed {
  /** A path that is routed in place of the context's. */
  readonly newRouterPath?: string | undefined
  /** The path that older versions route, until a router has matched. Then it is the pattern of the layer. */
  readonly routerPath?: unknown | undefined
  readonly router?: { readonly opts?: { readonly prefix?: string } } | undefined
}

/** The pattern of middleware of a router, by `router.use`, behind the prefix of that router. */
const ROUTER_LAYER = /^([^(]*)\((?:\?:\\\/\|\$|\[\^\/\]\*|\.\*)\)$/

function koaPathsOf(context: ParameterizedContext): Paths {
  const { newRouterPath, routerPath, router } = context as Routed
  const layer = typeof routerPath === 'string' ? routerPath : ''
  const given = newRouterPath ?? (router === undefined && layer !== '' ? layer : context.url)
  const paths = pathsAfter(given, context.originalUrl, pathsByParse)
  if (router === undefined) return paths
  const prefix = ROUTER_LAYER.exec(layer)?.[1] ?? router.opts?.prefix ?? ''
  return prefix === '' || prefix === '/' ? paths : pathsWithin(prefix, paths)
}

const koaFramework: Framework<ParameterizedContext, ParameterizedContext> = {
  requestOf: ({ req }) => req,
  identityOf: ({ req }) => req,
  pathsOf: koaPathsOf,
  keep({ state }, _, decision) {
    state.rateLimit = decision
  },
  kept: ({ state }) => state.rateLimit as Decision | undefined,
  set({ res }, name, value) {
    res.setHeader(name, value)
  },
  get({ res }, name) {
    const value = res.getHeader(name)
    return value === undefined ? undefined : String(value)
  },
  hasGone: ({ req }) => hasGone(req),
  onEnd(_, { res }, done) {
    onEnd(res, done)
  },
  connectionOf: (_, { res }) => connectionOf(res),
}

function send(context: ParameterizedContext, { status, contentType, body }: Refusal): void {
  context.status = status
  context.set('Content-Type', contentType)
  context.body = body
}

/**
 * For an error, Koa's `context.onerror` removes all headers but those of the error. Lets it leave those of a
 * limiter. They are not put on the error: an application may throw one object to several clients.
 * @param names in lower case
 */
function keepHeaders(context: ParameterizedContext, names: ReadonlySet<string>): void {
  const { res, onerror } = context
  context.onerror = (error: Error) => {
    const { removeHeader } = res
    res.removeHeader = (name) => {
      if (!names.has(name.toLowerCase())) removeHeader.call(res, name)
      return res
    }
    try {
      onerror.call(context, error)
    } finally {
      res.removeHeader = removeHeader
    }
  }
}

/**
 * Limits the requests of a Koa app (3), by the client's address unless `key` says otherwise. The decision is
 * at `context.state.rateLimit`.
 * @param options the rule (`limit` and `window` at least), or `rules`, a `limiter`, or `routes`
 * @returns the middleware
 * @throws {MillraceError} the errors of `createLimiter`, and `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import Koa from 'koa'
 * import { rateLimit } from 'millrace/koa'
 *
 * const app = new Koa()
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 * ```
 */
export function rateLimit(options: KoaOptions): RateLimiter {
  return limitBy(new Policy(options, koaFramework, ['asError']), options)
}

/**
 * Limits the requests of a Koa app (3) by a group: a limiter for each of several keys, such as the account and the client's
 * address. It passes if all members admit it, else none is charged. A refusal's status, headers and problem document are
 * those of the member that refused.
 * @param options `members`: limiters or rules by names of your choice, each with a key of the context
 * @returns the middleware. The decision is at `context.state.rateLimit`
 * @throws {MillraceError} the errors of `createLimiter` and of `group`, and `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import Koa from 'koa'
 * import { groupLimit } from 'millrace/koa'
 *
 * const app = new Koa()
 * app.use(groupLimit({
 *   members: {
 *     account: { limit: 5, window: '15m', key: (context) => context.get('x-account') },
 *     address: { limit: 20, window: '15m' },
 *   },
 * }))
 * ```
 */
export function groupLimit(options: KoaGroupOptions): RateLimiter<MemberKeys, GroupStats> {
  return limitBy(new Policy(options, koaFramework, ['asError'], BY_GROUP), options)
}

function limitBy<Key, Of>(
  policy: Policy<ParameterizedContext, ParameterizedContext>,
  { handler, standard, asError = false }: KoaAnswers<never> & { readonly standard?: Standard | undefined },
): RateLimiter<Key, Of> {
  const own =
    handler && ((context: ParameterizedContext, _: unknown, decision: never) => handler(context, decision))

  const names = new Set(
    [...exposedHeaders(standard ?? DEFAULT_STANDARD).split(', '), EXPOSE].map((name) => name.toLowerCase()),
  )
  const rethrow = (error: unknown, context: ParameterizedContext): never => {
    keepHeaders(context, names)
    throw error
  }
  const fail = (context: ParameterizedContext, refusal: Refusal): void =>
    rethrow(new RateLimitError(refusal), context)
  const finish = async (step: Step, context: ParameterizedContext, next: () => Promise<unknown>) => {
    if (step === undefined) await next().catch((error) => rethrow(error, context))
    else if (step === GONE) context.status = GONE_STATUS
    else await policy.answer(step, context, context, own, asError ? fail : send)
  }
  const limited = (context: ParameterizedContext, next: () => Promise<unknown>) => {
    const step = policy.admit(context, context)
    if (step === undefined) return next().catch((error) => rethrow(error, context))
    return step instanceof Promise
      ? step.then((later) => finish(later, context, next))
      : finish(step, context, next)
  }
  return Object.assign(limited, policy.handles<Key, Of>()) as RateLimiter<Key, Of>
}
