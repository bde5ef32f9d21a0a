import type { LimiterStats } from '../api/limiter.js'
import type { GroupStats } from '../api/limiter-group.js'
import type { Decision } from '../core/decision.js'
import type { GroupDecision } from '../core/group-decision.js'
import { BY_GROUP } from './groups/group-limits.js'
import type { GroupLimitOptions, MemberKeys } from './groups/options.js'
import { type NodeRequest, type NodeResponse, nodeFramework, send } from './node-framework.js'
import type { RateLimitOptions } from './options.js'
import { Policy } from './policy.js'
import type { RateLimitHandles } from './stats.js'
import { GONE, type Step } from './step.js'

export { ipKey } from './addresses/ip-key.js'
export type * from './framework-types.js'
export type { NodeRequest, NodeResponse } from './node-framework.js'
export { type HeaderPlace, type WriteHeadersOptions, writeHeaders } from './write-headers.js'

declare module 'http' {
  interface IncomingMessage {
    /** The decision about this request; undefined if it was not limited. */
    rateLimit?: Decision | undefined
  }
}

declare module 'http2' {
  interface Http2ServerRequest {
    /** The decision about this request; undefined if it was not limited. */
    rateLimit?: Decision | undefined
  }
}

/** How refused requests are answered. */
export interface NodeAnswers<D extends Decision> {
  /**
   * Answers a refused request, in place of `statusCode` and `message`. The headers are set.
   * @default a 429 with a problem document, or 403 for a banned key
   */
  handler?: ((request: NodeRequest, response: NodeResponse, decision: D) => void | Promise<void>) | undefined
}

/** The options of {@link rateLimit} for node:http and node:http2. */
export interface NodeOptions extends RateLimitOptions<NodeRequest, NodeResponse>, NodeAnswers<Decision> {}

/** The options of {@link groupLimit} for node:http and node:http2. */
export interface NodeGroupOptions
  extends GroupLimitOptions<NodeRequest, NodeResponse>,
    NodeAnswers<GroupDecision> {}

/** Limits requests: calls `next` for those that pass, and answers the others. */
export interface RateLimiter<Key = string, Of = LimiterStats> extends RateLimitHandles<Key, Of> {
  /**
   * @param request the request of a server of node:http or node:http2
   * @param response its response
   * @param next handles the request if it passes. What it throws, or rejects with, is the caller's
   */
  (request: NodeRequest, response: NodeResponse, next: () => unknown): void
}

/**
 * Limits the requests of a server of node:http or node:http2, by the client's address unless `key` says
 * otherwise. The decision is at `request.rateLimit`. The paths of `routes` are compared with
 * `new URL(request.url, 'http://server').pathname`: find the path of a request in the same way, and not in
 * `request.url`, where `/status/../login` is another one.
 * @param options the rule (`limit` and `window` at least), or `rules`, a `limiter`, or `routes`
 * @returns a function that limits one request
 * @throws {MillraceError} the errors of `createLimiter`, and `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { rateLimit } from 'millrace/http'
 *
 * const limited = rateLimit({ limit: 100, window: '1m' })
 * createServer((request, response) => limited(request, response, () => response.end('hello\n')))
 * ```
 */
export function rateLimit(options: NodeOptions): RateLimiter {
  return limitBy(new Policy<NodeRequest, NodeResponse>(options, nodeFramework), options)
}

/**
 * Limits the requests of a server of node:http or node:http2 by a group: a limiter for each of several keys, such as the account and the client's
 * address. It passes if all members admit it, else none is charged. A refusal's status, headers and problem document are
 * those of the member that refused.
 * @param options `members`: limiters or rules by names of your choice, each with a key of the request
 * @returns a function that limits one request. The decision is at `request.rateLimit`
 * @throws {MillraceError} the errors of `createLimiter` and of `group`, and `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import { groupLimit } from 'millrace/http'
 *
 * const limited = groupLimit({
 *   members: {
 *     account: { limit: 5, window: '15m', key: (request) => `${request.headers['x-account']}` },
 *     address: { limit: 20, window: '15m' },
 *   },
 * })
 * ```
 */
export function groupLimit(options: NodeGroupOptions): RateLimiter<MemberKeys, GroupStats> {
  return limitBy(new Policy<NodeRequest, NodeResponse>(options, nodeFramework, [], BY_GROUP), options)
}

function limitBy<Key, Of>(
  policy: Policy<NodeRequest, NodeResponse>,
  { handler }: NodeAnswers<never>,
): RateLimiter<Key, Of> {
  const finish = (step: Step, request: NodeRequest, response: NodeResponse, next: () => unknown): void => {
    if (step === undefined) next()
    else if (step !== GONE) void policy.answer(step, request, response, handler, send)
  }
  const limited = (request: NodeRequest, response: NodeResponse, next: () => unknown): void => {
    const step = policy.admit(request, response)
    if (step === undefined) next()
    else if (step instanceof Promise) void step.then((later) => finish(later, request, response, next))
    else finish(step, request, response, next)
  }
  return Object.assign(limited, policy.handles<Key, Of>())
}
