import type { Decision } from '../core/decision.js'
import { type NodeRequest, type NodeResponse, nodeFramework, send } from './node-framework.js'
import type { RateLimitOptions } from './options.js'
import { Policy } from './policy.js'
import type { RateLimitHandles } from './stats.js'
import { GONE, type Step } from './step.js'

export { ipKey } from './addresses/ip-key.js'
export type * from './framework-types.js'
export type { NodeRequest, NodeResponse } from './node-framework.js'

/** The options of {@link rateLimit} for node:http and node:http2. */
export interface NodeOptions extends RateLimitOptions<NodeRequest, NodeResponse> {
  /**
   * Answers a refused request, in place of `statusCode` and `message`. The headers are set.
   * @default a 429 with a problem document, or 403 for a banned key
   */
  handler?: (request: NodeRequest, response: NodeResponse, decision: Decision) => void | Promise<void>
}

/** Limits requests: calls `next` for those that pass, and answers the others. */
export interface RateLimiter extends RateLimitHandles {
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
  const policy = new Policy<NodeRequest, NodeResponse>(options, nodeFramework)
  const { handler } = options

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
  return Object.assign(limited, policy.handles)
}
