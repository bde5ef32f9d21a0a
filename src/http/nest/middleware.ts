import type { IncomingMessage, ServerResponse } from 'node:http'
import type { LimiterStats } from '../../api/limiter.js'
import type { GroupStats } from '../../api/limiter-group.js'
import type { Decision } from '../../core/decision.js'
import type { GroupDecision } from '../../core/group-decision.js'
import type { Framework, HttpRequest } from '../framework.js'
import { BY_GROUP } from '../groups/group-limits.js'
import type { GroupLimitOptions, MemberKeys } from '../groups/options.js'
import { answeredBy, nodeFramework, send } from '../node-framework.js'
import type { RateLimitOptions } from '../options.js'
import { Policy } from '../policy.js'
import type { RateLimitHandles } from '../stats.js'
import { GONE, type Step } from '../step.js'
import { RateLimitException } from './exception.js'
import { type NestRequest, type NestResponse, pathsOf } from './framework.js'

/** How refused requests are answered. */
export interface MiddlewareAnswers<D extends Decision> {
  /**
   * Whether a request that does not pass is handed to the framework's own error handling, as a {@link RateLimitException}.
   * The headers are set before. `handler` still answers refusals.
   * @default false: it is answered
   */
  asError?: boolean | undefined
  /**
   * Answers a refused request, in place of `statusCode` and `message`. The headers are set.
   * @default a 429 with a problem document, or 403 for a banned key
   */
  handler?:
    | ((
        request: NestRequest,
        response: NestResponse,
        next: (error?: unknown) => void,
        decision: D,
      ) => unknown)
    | undefined
}

/** The options of {@link rateLimit} for Nest. */
export interface MiddlewareOptions
  extends RateLimitOptions<NestRequest, NestResponse>,
    MiddlewareAnswers<Decision> {}

/** The options of {@link groupLimit} for Nest. */
export interface GroupMiddlewareOptions
  extends GroupLimitOptions<NestRequest, NestResponse>,
    MiddlewareAnswers<GroupDecision> {}

/** Limits requests: middleware for `app.use` and `consumer.apply`. */
export interface RateLimiter<Key = string, Of = LimiterStats> extends RateLimitHandles<Key, Of> {
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
  return limitBy(new Policy(options, middlewareFramework, ['asError']), options)
}

/**
 * Limits requests before Nest finds their handlers by a group: a limiter for each of several keys, such as the account and the client's
 * address. It passes if all members admit it, else none is charged. A refusal's status, headers and problem document are
 * those of the member that refused. A member with a key from the body needs
 * {@link GroupLimitGuard}, which is asked after the body is read.
 * @param options `members`: limiters or rules by names of your choice, each with a key of the request
 * @returns the middleware
 * @throws {MillraceError} the errors of `createLimiter` and of `group`, and `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import { groupLimit } from 'millrace/nest'
 *
 * consumer.apply(groupLimit({
 *   members: {
 *     account: { limit: 5, window: '15m', key: (request) => request.headers['x-account'] },
 *     address: { limit: 20, window: '15m' },
 *   },
 * })).forRoutes('login')
 * ```
 */
export function groupLimit(options: GroupMiddlewareOptions): RateLimiter<MemberKeys, GroupStats> {
  return limitBy(new Policy(options, middlewareFramework, ['asError'], BY_GROUP), options)
}

function limitBy<Key, Of>(
  policy: Policy<NestRequest, NestResponse>,
  { handler, asError = false }: MiddlewareAnswers<never>,
): RateLimiter<Key, Of> {
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
        ((limited: NestRequest, answer: NestResponse, decision: never) =>
          handler(limited, answer, next, decision))
      void policy.answer(
        step,
        request,
        response,
        own,
        asError ? (_, refusal) => next(new RateLimitException(refusal)) : send,
      )
    }
  }
  const limited: (...parameters: Parameters<RateLimiter>) => void = (request, response, next) => {
    const step = policy.admit(request, response)
    if (step === undefined) next()
    else if (step instanceof Promise) step.then((later) => finish(later, request, response, next)).catch(next)
    else finish(step, request, response, next)
  }
  return Object.assign(limited, policy.handles<Key, Of>())
}
