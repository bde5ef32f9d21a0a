import type { Decision } from '../core/decision.js'
import { invalid } from '../core/errors.js'
import { type Flight, flightOf, inFlight } from './flight.js'
import type { Framework } from './framework.js'
import { checkOptionsObject, type RateLimitOptions } from './options.js'
import { Policy } from './policy.js'
import type { RateLimitHandles } from './stats.js'
import { GONE, GONE_STATUS, type Refusal } from './step.js'
import { checkResponse, hasHeaders, httpRequestOf, pathOf } from './web-request.js'

/** The options of a limit for a plain function of requests. `key` or `address` must be there. */
export interface FetchOptions extends RateLimitOptions<Request, Response> {
  /** The address of a client. */
  address?: (request: Request) => string | undefined
  /**
   * Answers a refused request, in place of `statusCode` and `message`. The headers are set on its response.
   * @default a 429 with a problem document, or 403 for a banned key
   */
  handler?: (request: Request, decision: Decision) => Response | Promise<Response>
}

/** A request with the decision on it. */
export type LimitedRequest = Request & { readonly rateLimit: Decision }

/** A function that answers requests, such as a server's `fetch`. `rest` is what the server hands on. */
export type FetchHandler<Rest extends unknown[]> = (
  request: LimitedRequest,
  ...rest: Rest
) => Response | Promise<Response>

/** A limited {@link FetchHandler}. */
export interface LimitedFetchHandler<Rest extends unknown[]> extends RateLimitHandles {
  (request: Request, ...rest: Rest): Promise<Response>
}

/** Where the decision of a request is kept. */
interface Kept {
  rateLimit?: Decision
}

/** A request in one limiter, and its response when there is one. */
class Exchange {
  readonly request: Request & Kept
  readonly flight: Flight
  response: Response | undefined
  /** Called when the response is made: nothing says when it has been sent. */
  readonly onEnd: (() => void)[] = []

  constructor(request: Request) {
    this.request = request
    this.flight = flightOf(request)
  }
}

const frameworkOf = (
  addressOf: ((request: Request) => string | undefined) | undefined,
): Framework<Exchange, Exchange> => ({
  requestOf: ({ request }) => httpRequestOf(request, () => addressOf?.(request)),
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
    exchange.onEnd.push(() => {
      signal.removeEventListener('abort', abort)
      if (!signal.aborted) done(true)
    })
  },
  connectionOf: () => undefined,
})

/** Limits a plain function of requests. @see rateLimit of `millrace/hono` */
export function limitFetch<Rest extends unknown[]>(
  options: FetchOptions,
  fetch: FetchHandler<Rest>,
): LimitedFetchHandler<Rest> {
  checkOptionsObject(options)
  const { address, key, handler } = options
  if (address === undefined && key === undefined) {
    throw invalid(
      'key',
      key,
      'a key function, or the option address: a Request does not have the address of its client',
    )
  }
  const policy = new Policy(exchangeOptions(options), frameworkOf(address), ['address'])
  const own =
    handler &&
    (async (exchange: Exchange, _: Exchange, decision: Decision) => {
      exchange.response = checkResponse(await handler(exchange.request, decision))
    })

  const answer = async (exchange: Exchange, rest: Rest): Promise<Response> => {
    const { request, flight } = exchange
    const step = await policy.admit(exchange, exchange)
    if (step === undefined) exchange.response = await fetch(request as LimitedRequest, ...rest)
    else if (step === GONE) return new Response(null, { status: GONE_STATUS })
    else await policy.answer(step, exchange, exchange, own, send)
    const response = withHeaders(exchange.response!, flight.headers)
    exchange.response = response
    for (const end of exchange.onEnd) end()
    return response
  }
  const limited = (request: Request, ...rest: Rest): Promise<Response> => {
    const exchange = new Exchange(request)
    return inFlight(exchange.flight, () => answer(exchange, rest))
  }
  return Object.assign(limited, policy.handles)
}

/** The same options for exchanges: each function is given what the user's types say. */
function exchangeOptions(options: FetchOptions): RateLimitOptions<Exchange, Exchange> {
  const { key, cost, skip, limit, message, onLimited, countIf, onError } = options
  const own = {
    ...(key && { key: ({ request }: Exchange) => key(request) }),
    ...(cost && { cost: ({ request }: Exchange) => cost(request) }),
    ...(skip && { skip: ({ request }: Exchange) => skip(request) }),
    ...(typeof limit === 'function' && { limit: ({ request }: Exchange) => limit(request) }),
    ...(typeof message === 'function' && {
      message: ({ request }: Exchange, decision: Decision) => message(request, decision),
    }),
    ...(onLimited && {
      onLimited: ({ request }: Exchange, decision: Decision, key: string) =>
        onLimited(request, decision, key),
    }),
    ...(countIf && { countIf: ({ response }: Exchange) => countIf(response!) }),
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
