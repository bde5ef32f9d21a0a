import type { NextFunction, Request, Response } from 'express'
import type { Decision } from '../core/decision.js'
import type { Framework } from './framework.js'
import { nodeFramework, send } from './node-framework.js'
import type { RateLimitOptions } from './options.js'
import { Policy } from './policy.js'
import { pathsAfter } from './readings.js'
import { pathsByParse } from './routes/request-path.js'
import type { RateLimitHandles } from './stats.js'
import { GONE, type Step } from './step.js'

export { ipKey } from './addresses/ip-key.js'
export type * from './framework-types.js'

declare global {
  namespace Express {
    interface Request {
      /** The decision of `rateLimit` of `millrace/express`. */
      rateLimit: Decision
    }
  }
}

/** The options of {@link rateLimit} for Express. */
export interface ExpressOptions extends RateLimitOptions<Request, Response> {
  /**
   * Answers a refused request, in place of `statusCode` and `message`. The headers are set.
   * @default a 429 with a problem document, or 403 for a banned key
   */
  handler?: (request: Request, response: Response, next: NextFunction, decision: Decision) => unknown
}

/** Limits requests: middleware for `app.use`, a router or a route. */
export interface RateLimiter extends RateLimitHandles {
  (request: Request, response: Response, next: NextFunction): void
}

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
  const policy = new Policy<Request, Response>(options, expressFramework)
  const { handler } = options

  const handlerWith = (next: NextFunction) =>
    handler &&
    ((request: Request, response: Response, decision: Decision) => handler(request, response, next, decision))
  const finish = (step: Step, request: Request, response: Response, next: NextFunction): void => {
    if (step === undefined) next()
    else if (step !== GONE) void policy.answer(step, request, response, handlerWith(next), send)
  }
  const limited = (request: Request, response: Response, next: NextFunction): void => {
    const step = policy.admit(request, response)
    if (step === undefined) next()
    else if (step instanceof Promise) step.then((later) => finish(later, request, response, next)).catch(next)
    else finish(step, request, response, next)
  }
  return Object.assign(limited, policy.handles)
}
