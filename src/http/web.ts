import type { GroupStats } from '../api/limiter-group.js'
import {
  type Answered,
  type Any,
  type FetchGroupOptions,
  type FetchHandler,
  type FetchOptions,
  type LimitedFetchHandler,
  limitFetch,
  limitFetchByGroup,
} from './fetch-handler.js'
import type { MemberKeys } from './groups/options.js'

export { ipKey } from './addresses/ip-key.js'
export type {
  FetchGroupOptions,
  FetchHandler,
  FetchOptions,
  LimitedFetchHandler,
  LimitedRequest,
} from './fetch-handler.js'
export type * from './framework-types.js'
export { type HeaderPlace, type WriteHeadersOptions, writeHeaders } from './write-headers.js'

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

/**
 * Limits a function from `Request` to `Response` by a group: a limiter for each of several keys, such as the account and the client's
 * address. It passes if all members admit it, else none is charged. A refusal's status, headers and problem document are
 * those of the member that refused. Where a member has no `key`, `address` or `trustProxy`
 * must be there.
 * @param options `members`: limiters or rules by names of your choice, each with a key of the request
 * @param fetch answers the requests that pass. It is given all that the server hands on, beginning with the request
 * @returns the limited function. The decision is at `request.rateLimit`
 * @throws {MillraceError} the errors of `createLimiter` and of `group`, and `ERR_MILLRACE_INVALID_OPTION`
 * @example
 * ```ts
 * import { groupLimit } from 'millrace/web'
 *
 * const members = {
 *   account: { limit: 5, window: '15m', key: async (request) => (await request.clone().json()).account },
 *   address: { limit: 20, window: '15m' },
 * }
 * const fetch = groupLimit({ members, trustProxy: 1 }, () => new Response('welcome'))
 * ```
 */
export function groupLimit<
  Incoming extends Request = Request,
  Info = Any,
  Answer extends Answered = Response,
>(
  options: FetchGroupOptions<Incoming, Info>,
  fetch: FetchHandler<Incoming, Info, Answer>,
): LimitedFetchHandler<Incoming, Info, Answer, MemberKeys, GroupStats> {
  return limitFetchByGroup(options, fetch)
}
