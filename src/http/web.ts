import {
  type Answered,
  type Any,
  type FetchHandler,
  type FetchOptions,
  type LimitedFetchHandler,
  limitFetch,
} from './fetch-handler.js'

export { ipKey } from './addresses/ip-key.js'
export type { FetchHandler, FetchOptions, LimitedFetchHandler, LimitedRequest } from './fetch-handler.js'
export type * from './framework-types.js'

/**
 * Limits a function from `Request` to `Response`: what `Bun.serve` and `Deno.serve` call, a route handler or the proxy
 * of Next.js. A `Request` does not have the address of its client, so `key`, `address` or `trustProxy` must be there.
 * The decision is at `request.rateLimit`.
 * @param options the rule (`limit` and `window` at least), or `rules`, a `limiter`, or `routes`
 * @param fetch answers the requests that pass. It is given all that the server hands on, beginning with the request
 * @returns the limited function. Its requests are of the type of those of `fetch`, such as `NextRequest`
 * @throws {MillraceError} the errors of `createLimiter`, and `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import { rateLimit } from 'millrace/web'
 *
 * const fetch = rateLimit(
 *   { limit: 100, window: '1m', key: (request) => request.headers.get('x-api-key') ?? 'none' },
 *   (request) => new Response(`${request.rateLimit?.remaining} requests left\n`),
 * )
 * ```
 */
export function rateLimit<Incoming extends Request = Request, Info = Any, Answer extends Answered = Response>(
  options: FetchOptions<Incoming, Info>,
  fetch: FetchHandler<Incoming, Info, Answer>,
): LimitedFetchHandler<Incoming, Info, Answer> {
  return limitFetch(options, fetch)
}
