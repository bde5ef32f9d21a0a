import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Decision } from '../../core/decision.js'
import type { Framework, HttpRequest } from '../framework.js'
import { answeredBy, nodeFramework, send } from '../node-framework.js'
import type { RateLimitOptions } from '../options.js'
import { Policy } from '../policy.js'
import type { RateLimitHandles } from '../stats.js'
import { GONE, type Step } from '../step.js'
import { type NestRequest, type NestResponse, pathsOf } from './framework.js'

/** The options of {@link rateLimit} for Nest. */
export interface MiddlewareOptions extends RateLimitOptions<NestRequest, NestResponse> {
  /**
   * Answers a refused request, in place of `statusCode` and `message`. The headers are set.
   * @default a 429 with a problem document, or 403 for a banned key
   */
  handler?: (
    request: NestRequest,
    response: NestResponse,
    next: (error?: unknown) => void,
    decision: Decision,
  ) => unknown
}

/** Limits requests: middleware for `app.use` and `consumer.apply`. */
export interface RateLimiter extends RateLimitHandles {
  (request: NestRequest, response: NestResponse, next: (error?: unknown) => void): void
}

/** Express and Fastify cut the part that a middleware is mounted at off the path of a request. */
const middlewareFramework: Framework<NestRequest, NestResponse> = {
  ...(nodeFramework as unknown as Framework<IncomingMessage, ServerResponse>),
  requestOf: (request) => request as HttpRequest,
  identityOf: (request, response) => answeredBy(request.raw ?? request, response.raw ?? response),
  pathsOf,
}

/**
 * Limits requests before Nest reads their bodies and finds their handlers, so also requests that no handler
 * answers. Refusals are answered, not thrown. On Fastify, middleware is handed the request of Node.js: the
 * decision is at `request.raw.rateLimit`.
 * @param options the rule (`limit` and `window` at least), or `rules`, a `limiter`, or `routes`
 * @returns the middleware
 * @throws {MillraceError} the errors of `createLimiter`, and `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import { NestFactory } from '@nestjs/core'
 * import { rateLimit } from 'millrace/nest'
 *
 * const app = await NestFactory.create(AppModule)
 * app.use(rateLimit({ limit: 1000, window: '1m' }))
 * ```
 */
export function rateLimit(options: MiddlewareOptions): RateLimiter {
  const policy = new Policy(options, middlewareFramework)
  const { handler } = options

  const finish = (
    step: Step,
    request: NestRequest,
    response: NestResponse,
    next: (error?: unknown) => void,
  ): void => {
    if (step === undefined) next()
    else if (step !== GONE) {
      const own =
        handler &&
        ((limited: NestRequest, answer: NestResponse, decision: Decision) =>
          handler(limited, answer, next, decision))
      void policy.answer(step, request, response, own, send)
    }
  }
  const limited: (...parameters: Parameters<RateLimiter>) => void = (request, response, next) => {
    const step = policy.admit(request, response)
    if (step === undefined) next()
    else if (step instanceof Promise) step.then((later) => finish(later, request, response, next)).catch(next)
    else finish(step, request, response, next)
  }
  return Object.assign(limited, policy.handles)
}
