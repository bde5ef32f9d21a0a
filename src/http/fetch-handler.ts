import type { LimiterStats } from '../api/limiter.js'
import type { GroupStats } from '../api/limiter-group.js'
import type { Decision } from '../core/decision.js'
import { invalid } from '../core/errors.js'
import type { GroupDecision } from '../core/group-decision.js'
import type { Size } from '../core/sizes.js'
import { isIpKey } from './addresses/ip-key.js'
import { type Flight, flightOf, inFlight } from './flight.js'
import type { Framework } from './framework.js'
import { BY_GROUP } from './groups/group-limits.js'
import {
  type GroupLimitOptions,
  type GroupMemberRules,
  type MemberKeys,
  membersOf,
  withKeys,
} from './groups/options.js'
import { type Awaitable, type CallLimits, checkOptionsObject, type RateLimitOptions } from './options.js'
import { Policy } from './policy.js'
import type { RateLimitHandles } from './stats.js'
import { GONE, GONE_STATUS, type Refusal } from './step.js'
import { checkResponse, hasHeaders, httpRequestOf, pathOf } from './web-request.js'

/** What a function answers: nothing, if it has upgraded the connection. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without a return statement answers void
export type Answered = Response | undefined | void

/** What a server hands on beside the request. Its type is that of a caller who names it. */
// biome-ignore lint/suspicious/noExplicitAny: each server hands on another type
export type Any = any

/** What the options for a plain function of requests have beside those of every framework. */
export interface FetchAnswers<Incoming, Info, D extends Decision> {
  /**
   * The address of a client: on Bun `(request, server) => server.requestIP(request)?.address`, on Deno
   * `(request, info) => info.remoteAddr.hostname`.
   * @default with `trustProxy: 1` or more, what the proxy says, which all requests have to come from
   */
  address?: ((request: Incoming, info: Info, ...more: Any[]) => string | undefined) | undefined
  /** The units that this request costs: see {@link RateLimitOptions.cost}. */
  cost?: ((request: Incoming, info: Info, ...more: Any[]) => Awaitable<number>) | undefined
  /** Whether to pass this request on without a decision. */
  skip?: ((request: Incoming, info: Info, ...more: Any[]) => Awaitable<boolean>) | undefined
  /**
   * Answers a refused request, in place of `statusCode` and `message`. The headers are set on its response.
   * @default a 429 with a problem document, or 403 for a banned key
   */
  handler?: ((request: Incoming, decision: D) => Response | Promise<Response>) | undefined
}

/**
 * The options of a limit for a plain function of requests. A `Request` does not have the address of its client: `key`,
 * `address` or `trustProxy` must be there. `key`, `cost`, `skip`, `limit` and `address` are given all that the server
 * hands to the function: the request, and what comes after it, such as Bun's server, Deno's `info`, Next.js's `context`.
 */
export interface FetchOptions<Incoming extends Request = Request, Info = Any>
  extends Omit<RateLimitOptions<Incoming, Response>, 'key' | 'cost' | 'skip' | 'limit'>,
    FetchAnswers<Incoming, Info, Decision> {
  /** The key that is limited: see {@link RateLimitOptions.key}. By default the client's address, by `address`. */
  key?: ((request: Incoming, info: Info, ...more: Any[]) => Awaitable<string>) | undefined
  /** The limit, or a function that says that of a request: see {@link RateLimitOptions.limit}. */
  limit?:
    | Size
    | ((request: Incoming, info: Info, ...more: Any[]) => Awaitable<CallLimits | undefined>)
    | undefined
}

/** The options of a group for a plain function of requests. The functions are given what those of `FetchOptions` are. */
export interface FetchGroupOptions<Incoming extends Request = Request, Info = Any>
  extends Omit<GroupLimitOptions<Incoming, Response>, 'members' | 'cost' | 'skip' | 'limit'>,
    FetchAnswers<Incoming, Info, GroupDecision> {
  /** The limiters by names of your choice, each with a key of the request: see {@link GroupLimitOptions.members}. */
  members: Readonly<
    Record<
      string,
      Omit<GroupMemberRules<Incoming>, 'key'> & {
        key?: ((request: Incoming, info: Info, ...more: Any[]) => Awaitable<string>) | undefined
      }
    >
  >
  /** Limits of this request, by the names of members: see {@link GroupLimitOptions.limit}. */
  limit?:
    | ((
        request: Incoming,
        info: Info,
        ...more: Any[]
      ) => ReturnType<NonNullable<GroupLimitOptions<Incoming, Response>['limit']>>)
    | undefined
}

/**
 * A request with the decision on it. It is undefined if the request was not limited: by `skip`, `allow`,
 * `ignoreUserAgents` or `routes`, or where no decision could be made.
 */
export type LimitedRequest<Incoming extends Request = Request> = Incoming & {
  readonly rateLimit: Decision | undefined
}

/**
 * A function that answers requests, such as a server's `fetch`. It is given all that the server hands on. One that has
 * upgraded the connection may return nothing, as on Bun.
 */
export type FetchHandler<
  Incoming extends Request = Request,
  Info = Any,
  Answer extends Answered = Response,
> = (request: LimitedRequest<Incoming>, info: Info, ...more: Any[]) => Answer | Promise<Answer>

/** A limited {@link FetchHandler}. */
export interface LimitedFetchHandler<
  Incoming extends Request = Request,
  Info = Any,
  Answer extends Answered = Response,
  Key = string,
  Of = LimiterStats,
> extends RateLimitHandles<Key, Of> {
  (request: Incoming, info?: Info, ...more: Any[]): Promise<Response | Answer>
}

/** Where the decision of a request is kept. */
interface Kept {
  rateLimit?: Decision
}

/** What a server has handed on: the request, and what comes after it. */
type Handed = [request: Request, info: Any, ...more: Any[]]

/** A request in one limiter, and its response when there is one. */
class Exchange {
  readonly request: Request & Kept
  readonly handed: Handed
  readonly flight: Flight
  response: Response | undefined
  /** Called when the response is made: nothing says when it has been sent. */
  readonly onEnd: ((isSent: boolean) => void)[] = []

  constructor(handed: Handed) {
    this.request = handed[0]
    this.handed = handed
    this.flight = flightOf(handed[0])
  }
}

const frameworkOf = (addressOf: AnyOptions['address']): Framework<Exchange, Exchange> => ({
  requestOf: ({ handed }) => httpRequestOf(handed[0], 'address(request)', () => addressOf?.(...handed)),
  identityOf: ({ flight }) => flight,
  pathsOf: ({ request }) => pathOf(request),
  keep({ request, flight }, _, decision) {
    request.rateLimit = decision
    flight.decision = decision
  },
  kept: ({ flight }) => flight.decision,
  set: ({ flight }, name, value) => void flight.headers.set(name, value),
  get: ({ flight }, name) => flight.headers.get(name),
  hasGone: ({ request }) => request.signal.aborted,
  onEnd(exchange, _, done) {
    const { signal } = exchange.request
    if (signal.aborted) {
      done(false)
      return
    }
    const abort = () => done(false)
    signal.addEventListener('abort', abort, { once: true })
    exchange.onEnd.push((isSent) => {
      signal.removeEventListener('abort', abort)
      if (!signal.aborted) done(isSent)
    })
  },
  connectionOf: () => undefined,
})

/** The options of any caller, whose requests are of a type of its own. */
type AnyOptions = FetchOptions<Request>

/** Limits a plain function of requests. @see rateLimit of `millrace/web` */
export function limitFetch<Incoming extends Request, Info, Answer extends Answered>(
  given: FetchOptions<Incoming, Info>,
  fetch: FetchHandler<Incoming, Info, Answer>,
): LimitedFetchHandler<Incoming, Info, Answer> {
  checkOptionsObject(given)
  const options = given as unknown as AnyOptions
  checkAddresses(options, [['key', options.key]])
  return limitBy(
    new Policy(exchangeOptions(options), frameworkOf(options.address), ['address']),
    options,
    fetch,
  )
}

/** Limits a plain function of requests by a group. @see groupLimit of `millrace/web` */
export function limitFetchByGroup<Incoming extends Request, Info, Answer extends Answered>(
  given: FetchGroupOptions<Incoming, Info>,
  fetch: FetchHandler<Incoming, Info, Answer>,
): LimitedFetchHandler<Incoming, Info, Answer, MemberKeys, GroupStats> {
  checkOptionsObject(given)
  const options = given as unknown as AnyOptions
  const keys = membersOf(given.members).map(([name, { key }]) => [`members.${name}.key`, key] as const)
  checkAddresses(options, keys)
  const members = withKeys<Exchange>(
    given.members,
    (key) =>
      ({ handed }) =>
        (key as NonNullable<AnyOptions['key']>)(...handed),
  )
  const own = { ...exchangeOptions(options), members }
  return limitBy(new Policy(own, frameworkOf(options.address), ['address'], BY_GROUP), options, fetch)
}

function limitBy<Incoming extends Request, Info, Answer extends Answered, Key, Of>(
  policy: Policy<Exchange, Exchange>,
  { handler }: Pick<FetchAnswers<Request, Any, never>, 'handler'>,
  fetch: FetchHandler<Incoming, Info, Answer>,
): LimitedFetchHandler<Incoming, Info, Answer, Key, Of> {
  if (typeof fetch !== 'function') throw invalid('fetch', fetch, 'a function that answers requests')
  const own =
    handler &&
    (async (exchange: Exchange, _: Exchange, decision: never) => {
      exchange.response = checkResponse(await handler(exchange.request, decision))
    })

  const answer = async (exchange: Exchange): Promise<Response | Answer> => {
    const { handed, flight } = exchange
    const step = await policy.admit(exchange, exchange)
    if (step === undefined) {
      const made = await (fetch as FetchHandler<Any, Info, Answer>)(...handed)
      if (made === undefined) {
        for (const end of exchange.onEnd) end(false)
        return made as Answer
      }
      exchange.response = made as Response
    } else if (step === GONE) return new Response(null, { status: GONE_STATUS })
    else await policy.answer(step, exchange, exchange, own, send)
    const response = withHeaders(exchange.response!, flight.headers)
    exchange.response = response
    for (const end of exchange.onEnd) end(true)
    return response
  }
  // Deno hands on as much as the function has parameters.
  const limited = (request: Request, info: Any, ...more: Any[]): Promise<Response | Answer> => {
    const exchange = new Exchange([request, info, ...more])
    return inFlight(exchange.flight, () => answer(exchange))
  }
  return Object.assign(limited, policy.handles<Key, Of>()) as unknown as LimitedFetchHandler<
    Incoming,
    Info,
    Answer,
    Key,
    Of
  >
}

/** @throws MillraceError if nothing says whose a request is */
function checkAddresses(
  options: AnyOptions,
  keys: readonly (readonly [option: string, key: unknown])[],
): void {
  const { address, trustProxy } = options
  if (address !== undefined && typeof address !== 'function') throw invalid('address', address, 'a function')
  const byKey = keys.every(([, key]) => isIpKey(key) && !key.isBySocket)
  if (address !== undefined || byKey || (typeof trustProxy === 'number' && trustProxy > 0)) return
  const what = 'the option address, or trustProxy: 1: a Request does not have the address of its client'
  for (const [option, key] of keys) {
    if (key === undefined || (isIpKey(key) && key.isBySocket))
      throw invalid(option, key, `a key function, or ${what}`)
  }
  for (const name of ['allow', 'deny'] as const) {
    if (options[name] !== undefined) throw invalid(name, options[name], `no value without ${what}`)
  }
}

/** The same options for exchanges: each function is given what the user's types say. */
function exchangeOptions(options: AnyOptions): RateLimitOptions<Exchange, Exchange> {
  const { key, cost, skip, limit, message, onLimited, countIf, onError } = options
  const own = {
    ...(typeof key === 'function' && !isIpKey(key) && { key: ({ handed }: Exchange) => key(...handed) }),
    ...(typeof cost === 'function' && { cost: ({ handed }: Exchange) => cost(...handed) }),
    ...(typeof skip === 'function' && { skip: ({ handed }: Exchange) => skip(...handed) }),
    ...(typeof limit === 'function' && { limit: ({ handed }: Exchange) => limit(...handed) }),
    ...(typeof message === 'function' && {
      message: ({ request }: Exchange, decision: Decision) => message(request, decision),
    }),
    ...(typeof onLimited === 'function' && {
      onLimited: ({ request }: Exchange, decision: Decision, key: string) =>
        onLimited(request, decision, key),
    }),
    ...(typeof countIf === 'function' && { countIf: ({ response }: Exchange) => countIf(response!) }),
    ...(typeof onError === 'function' && {
      onError: (error: unknown, { request }: Exchange) => onError(error, request),
    }),
  }
  return { ...options, ...own } as unknown as RateLimitOptions<Exchange, Exchange>
}

function send(exchange: Exchange, { status, contentType, body }: Refusal): void {
  const isHead = exchange.request.method === 'HEAD'
  exchange.response = new Response(isHead ? null : body, { status, headers: { 'Content-Type': contentType } })
}

/** The response with these headers. The headers of a response from `fetch` can't be changed. */
function withHeaders(response: Response, headers: ReadonlyMap<string, string>): Response {
  if (headers.size === 0 || !hasHeaders(response)) return response
  const own = new Response(response.body, response)
  for (const [name, value] of headers) own.headers.set(name, value)
  return own
}
