import type { NextFunction, Request, Response } from 'express'
import type { LimiterStats } from '../api/limiter.js'
import type { GroupStats } from '../api/limiter-group.js'
import type { Decision } from '../core/decision.js'
import type { GroupDecision } from '../core/group-decision.js'
import type { Framework } from './framework.js'
import { BY_GROUP } from './groups/group-limits.js'
import type { GroupLimitOptions, MemberKeys } from './groups/options.js'
import { nodeFramework, send } from './node-framework.js'
import type { RateLimitOptions } from './options.js'
import { Policy } from './policy.js'
import { RateLimitError } from './rate-limit-error.js'
import { pathsAfter } from './readings.js'
import { pathsByParse } from './routes/request-path.js'
import type { RateLimitHandles } from './stats.js'
import { GONE, type Refusal, type Step } from './step.js'

export { ipKey } from './addresses/ip-key.js'
export type * from './framework-types.js'
export { RateLimitError } from './rate-limit-error.js'
export { type HeaderPlace, type WriteHeadersOptions, writeHeaders } from './write-headers.js'

declare global {
  namespace Express {
    interface Request {
      /** The decision about this request; undefined if it was not limited. */
      rateLimit?: Decision | undefined
    }
  }
}

/** How refused requests are answered. */
export interface ExpressAnswers<D extends Decision> {
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
  handler?: ((request: Request, response: Response, next: NextFunction, decision: D) => unknown) | undefined
}

/** The options of {@link rateLimit} for Express. */
export interface ExpressOptions extends RateLimitOptions<Request, Response>, ExpressAnswers<Decision> {}

/** The options of {@link groupLimit} for Express. */
export interface ExpressGroupOptions
  extends GroupLimitOptions<Request, Response>,
    ExpressAnswers<GroupDecision> {}

/** Limits requests: middleware for `app.use`, a router or a route. */
export interface RateLimiter<Key = string, Of = LimiterStats> extends RateLimitHandles<Key, Of> {
  (request: Request, response: Response, next: NextFunction): void
}

/** The option that frameworks with error handling have. */
const OWN = ['asError']

/** Express cuts off `url` what a router is mounted at, and puts it into `baseUrl`. */
const expressFramework: Framework<Request, Response> = {
  ...(nodeFramework as unknown as Framework<Request, Response>),
  requestOf: (request) => request,
  pathsOf: ({ url, originalUrl, baseUrl }) => pathsAfter(url, originalUrl, pathsByParse, baseUrl),
}

/**
 * Limits the requests of an Express app (4 and 5), by the client's address unless `key` says otherwise. The
 * decision is at `request.rateLimit`.
 * @param options the rule (`limit` and `window` at least), or `rules`, a `limiter`, or `routes`
 * @returns the middleware
 * @throws {MillraceError} the errors of `createLimiter`, and `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import express from 'express'
 * import { rateLimit } from 'millrace/express'
 *
 * const app = express()
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 * ```
 */
export function rateLimit(options: ExpressOptions): RateLimiter {
  return limitBy(new Policy<Request, Response>(options, expressFramework, OWN), options)
}

/**
 * Limits the requests of an Express app (4 and 5) by a group: a limiter for each of several keys, such as the account and the client's
 * address. It passes if all members admit it, else none is charged. A refusal's status, headers and problem document are
 * those of the member that refused.
 * @param options `members`: limiters or rules by names of your choice, each with a key of the request
 * @returns the middleware. The decision is at `request.rateLimit`
 * @throws {MillraceError} the errors of `createLimiter` and of `group`, and `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import express from 'express'
 * import { groupLimit } from 'millrace/express'
 *
 * const app = express()
 * const logins = groupLimit({
 *   members: {
 *     account: { limit: 5, window: '15m', key: (request) => request.body.account },
 *     address: { limit: 20, window: '15m' },
 *   },
 * })
 * app.post('/login', express.json(), logins, (request, response) => response.send('welcome'))
 * ```
 */
export function groupLimit(options: ExpressGroupOptions): RateLimiter<MemberKeys, GroupStats> {
  return limitBy(new Policy<Request, Response>(options, expressFramework, OWN, BY_GROUP), options)
}

/** Hands a refusal to the error handlers of the app. */
const failing =
  (next: NextFunction) =>
  (_: Response, refusal: Refusal): void =>
    next(new RateLimitError(refusal))

function limitBy<Key, Of>(
  policy: Policy<Request, Response>,
  { handler, asError = false }: ExpressAnswers<never>,
): RateLimiter<Key, Of> {
  const handlerWith = (next: NextFunction) =>
    handler &&
    ((request: Request, response: Response, decision: never) => handler(request, response, next, decision))
  const finish = (step: Step, request: Request, response: Response, next: NextFunction): void => {
    if (step === undefined) next()
    else if (step !== GONE)
      void policy.answer(step, request, response, handlerWith(next), asError ? failing(next) : send)
  }
  const limited = (request: Request, response: Response, next: NextFunction): void => {
    const step = policy.admit(request, response)
    if (step === undefined) next()
    else if (step instanceof Promise) step.then((later) => finish(later, request, response, next)).catch(next)
    else finish(step, request, response, next)
  }
  return Object.assign(limited, policy.handles<Key, Of>())
}
