/**
 * One request of a call of `fetch`, and the one that its redirect leads to. `limitedFetch` follows redirects
 * itself: each hop is a request to a host, and must be counted by the limit of that host.
 */
import type { Signal } from '../core/on-abort.js'
import {
  type FetchInit,
  type FetchInput,
  isRequest,
  type RequestLike,
  readHeaders,
  readInit,
  withoutHeaders,
} from './arguments.js'
import { canResend, isOfData, KeptBody } from './body.js'
import type { OutgoingRequest } from './options.js'

/** The part of a `Response` that is used, of whichever `fetch`. */
export interface FetchResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: { cancel(): Promise<void> } | null
  /** Is called for a call with `integrity`. */
  clone?(): { arrayBuffer(): Promise<ArrayBuffer> }
}

/** One request: what `fetch` is called with, and what the limit needs to know about it. */
export interface Hop extends OutgoingRequest {
  readonly input: FetchInput
  readonly init: FetchInit
  /** The body, or the stream that a `Request` has of it. */
  readonly body: unknown
  /** The body of a `Request` once more, for a redirect, if it is data. */
  readonly kept: KeptBody | undefined
  readonly signal: Signal | undefined
  /** Whether redirects are followed. Otherwise `fetch` does what the caller has asked for. */
  readonly follows: boolean
  /** Whether a redirect has led to another origin. */
  readonly isCrossOrigin: boolean
  /** What the last answer must have, if redirects are followed. */
  readonly integrity: string
}

/** As many as a browser follows: https://fetch.spec.whatwg.org/#http-redirect-fetch, step 7. */
export const MAX_REDIRECTS = 20
const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** What a `Request` says about itself, as `fetch` reads it. */
const SETTINGS = ['cache', 'credentials', 'integrity', 'keepalive', 'mode', 'redirect'] as const
/** The same, if `fetch` has no second argument: with one, it forgets these. */
const REFERRER = ['referrer', 'referrerPolicy'] as const
const OF_BODY = ['content-encoding', 'content-language', 'content-location', 'content-type', 'content-length']
const OF_ORIGIN = ['authorization', 'proxy-authorization', 'cookie', 'host']

/** Whether a URL is of HTTP: others, such as `data:`, have no host that could limit. */
export const isHttp = ({ protocol }: URL): boolean => protocol === 'http:' || protocol === 'https:'

/** The first hop of a call. @throws TypeError if an argument is none that `fetch` takes */
export function firstHop(givenInput: FetchInput, givenInit?: FetchInit): Hop {
  const given = readInit(givenInit)
  const request = isRequest(givenInput) ? givenInput : undefined
  const own = request === undefined ? given : { ...settingsOf(request, given), ...given }
  const { signal = request?.signal, method = 'GET', redirect = 'follow' } = own
  const href = request?.url ?? `${givenInput}`
  const url = new URL(href)
  const follows = redirect === 'follow' && isHttp(url)
  const { integrity = '', ...rest } = own
  const ofRequest = request !== undefined && (own.body === undefined || own.body === null)
  const { input = href, kept } = ofRequest ? taken(request) : { input: request }
  return {
    input,
    init: follows ? { ...rest, redirect: 'manual', integrity: '' } : own,
    url,
    method: method.toUpperCase(),
    headers: new Headers(own.headers),
    body: ofRequest ? request.body : own.body,
    kept,
    signal: signal instanceof AbortSignal ? signal : undefined, // `fetch` rejects any other
    follows,
    isCrossOrigin: false,
    integrity: follows ? `${integrity}` : '',
  }
}

/** Takes the body of a `Request` at once, as `fetch` does: the caller's is used up. Without one, nothing is done. */
function taken(request: RequestLike): Pick<Hop, 'input' | 'kept'> {
  const { body } = request
  if (body === null || body === undefined) return { input: request, kept: undefined }
  const isData = isOfData(body)
  const input = new (constructorOf(request))(request as Request)
  return { input, kept: isData ? new KeptBody(input.clone().body) : undefined }
}

/** The class that has the properties of a `Request`, not one that the caller has derived from it. */
function constructorOf(request: RequestLike): typeof Request {
  let prototype = Object.getPrototypeOf(request)
  while (!Object.hasOwn(prototype, 'url')) prototype = Object.getPrototypeOf(prototype)
  return prototype.constructor
}

/** Whether a hop can be sent again as it was. The stream of a `Request` is used up. */
export function canSendAgain({ body }: Hop): boolean {
  return canResend(body)
}

/** Whether a response leads to another URL. */
export function isRedirect({ status, headers }: FetchResponse): boolean {
  return REDIRECTS.has(status) && headers.get('location') !== null
}

/**
 * The hop that a redirect leads to, by the rules of `fetch`: a 303, and a 301 or 302 after a POST, become a GET
 * without a body; another origin is not sent the credentials.
 * @throws TypeError where `fetch` rejects, too
 */
export function nextHop(hop: Hop, { status, headers }: FetchResponse): Hop {
  const location = asUtf8(headers.get('location')!)
  if (!URL.canParse(location, hop.url.href)) throw networkError('redirect to what is no URL')
  const url = new URL(location, hop.url)
  if (url.hash === '') url.hash = hop.url.hash
  if (!isHttp(url)) throw networkError('redirect to another protocol')
  const isSameOrigin = url.origin === hop.url.origin
  if (!isSameOrigin && (url.username !== '' || url.password !== '')) {
    throw networkError('redirect with credentials to another origin')
  }
  const becomesGet =
    status === 303 ? hop.method !== 'GET' && hop.method !== 'HEAD' : status < 303 && hop.method === 'POST'
  const sent = hop.kept?.bytes ?? hop.body
  if (status !== 303 && !canResend(sent)) {
    throw networkError('redirect of a request whose body is a stream')
  }
  const dropped = [...(becomesGet ? OF_BODY : []), ...(isSameOrigin ? [] : OF_ORIGIN)]
  const own = withoutHeaders(hop.init.headers ?? [], dropped)
  const { body: _, duplex: __, ...rest } = hop.init
  const method = becomesGet ? 'GET' : (hop.init.method ?? 'GET')
  const body = becomesGet ? null : (sent ?? null)
  const referrerPolicy = policyIn(headers.get('referrer-policy')) ?? rest.referrerPolicy
  const init: FetchInit = { ...rest, method, headers: own, ...(hop.signal && { signal: hop.signal }) }
  if (referrerPolicy !== undefined) init.referrerPolicy = referrerPolicy
  if (body !== null) init.body = body as NonNullable<FetchInit['body']>
  const capitals = method.toUpperCase()
  const isCrossOrigin = hop.isCrossOrigin || !isSameOrigin
  if (isCrossOrigin && init.mode === 'same-origin') {
    throw networkError('redirect to another origin')
  }
  return {
    ...hop,
    isCrossOrigin,
    input: url.href,
    init,
    url,
    method: capitals,
    headers: new Headers(own),
    body,
    kept: undefined,
  }
}

/** The error of `fetch` for all that goes wrong after it has begun. */
export function networkError(cause: string): TypeError {
  return new TypeError('fetch failed', { cause: new Error(cause) })
}

/** What a `Request` says, for a call that is given `init`. */
function settingsOf(request: RequestLike, init: FetchInit): FetchInit {
  const names = Object.keys(init).length === 0 ? [...SETTINGS, ...REFERRER] : SETTINGS
  const settings = request as unknown as Readonly<Record<string, unknown>>
  const known = names.flatMap((name) => (settings[name] === undefined ? [] : [[name, settings[name]]]))
  return { ...Object.fromEntries(known), method: request.method, headers: readHeaders(request.headers) }
}

const POLICIES = new Set([
  'no-referrer',
  'no-referrer-when-downgrade',
  'same-origin',
  'origin',
  'strict-origin',
  'origin-when-cross-origin',
  'strict-origin-when-cross-origin',
  'unsafe-url',
])

/** The last policy that the header `Referrer-Policy` of a redirect has: it holds from then on. */
function policyIn(header: string | null): RequestInit['referrerPolicy'] {
  const known = (header ?? '').split(',').map((each) => each.trim().toLowerCase())
  return known.findLast((each) => POLICIES.has(each)) as RequestInit['referrerPolicy']
}

/** A header as it was sent: `fetch` shows each byte as one character. */
function asUtf8(text: string): string {
  return /[\x80-\xff]/.test(text) ? Buffer.from(text, 'latin1').toString() : text
}
