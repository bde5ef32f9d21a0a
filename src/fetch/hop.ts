/**
 * One request of a call of `fetch`, and the one that its redirect leads to. `limitedFetch` follows redirects
 * itself: each hop is a request to a host, and must be counted by the limit of that host.
 */
import type { Signal } from '../core/on-abort.js'
import { canResend } from './body.js'
import type { OutgoingRequest } from './options.js'

/** The part of a `Response` that is used, of whichever `fetch`. */
export interface FetchResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: { cancel(): Promise<void> } | null
}

/** The first argument of `fetch`: the URL, or a `Request`. */
export type FetchInput = string | URL | RequestLike
/** The second argument of `fetch`, of which the rest is passed on. */
export type FetchInit = RequestInit

/** The part of a `Request` that is used. */
export interface RequestLike {
  readonly url: string
  readonly method: string
  readonly headers: Headers
  readonly body: unknown
  readonly redirect: RequestInit['redirect']
  readonly signal: AbortSignal
}

/** One request: what `fetch` is called with, and what the limit needs to know about it. */
export interface Hop extends OutgoingRequest {
  readonly input: FetchInput
  readonly init: FetchInit
  readonly body: unknown
  readonly signal: Signal | undefined
  /** Whether redirects are followed. Otherwise `fetch` does what the caller has asked for. */
  readonly follows: boolean
}

/** As many as a browser follows: https://fetch.spec.whatwg.org/#http-redirect-fetch, step 7. */
export const MAX_REDIRECTS = 20
const REDIRECTS = new Set([301, 302, 303, 307, 308])
/** What a `Request` says about itself, as `fetch` reads it. */
const SETTINGS = [
  'cache',
  'credentials',
  'integrity',
  'keepalive',
  'mode',
  'referrer',
  'referrerPolicy',
] as const
const OF_BODY = ['content-encoding', 'content-language', 'content-location', 'content-type', 'content-length']
const OF_ORIGIN = ['authorization', 'proxy-authorization', 'cookie', 'host']

const isRequest = (input: FetchInput): input is RequestLike =>
  typeof input === 'object' && 'url' in input && 'method' in input

/** Whether a URL is of HTTP: others, such as `data:`, have no host that could limit. */
export const isHttp = ({ protocol }: URL): boolean => protocol === 'http:' || protocol === 'https:'

/** The first hop of a call. @throws TypeError if the URL is none */
export function firstHop(input: FetchInput, init: FetchInit = {}): Hop {
  const request = isRequest(input) ? input : undefined
  const follows = (init.redirect ?? request?.redirect ?? 'follow') === 'follow'
  const signal = init.signal === undefined ? request?.signal : init.signal
  return {
    input,
    init: follows ? { ...init, redirect: 'manual' } : init,
    url: new URL(request?.url ?? String(input)),
    method: (init.method ?? request?.method ?? 'GET').toUpperCase(),
    headers: new Headers(init.headers ?? request?.headers),
    body: init.body === undefined ? request?.body : init.body,
    signal: signal instanceof AbortSignal ? signal : undefined, // `fetch` rejects any other
    follows,
  }
}

/** Whether a hop can be sent again. The body of a `Request` is a stream, whatever it was made of. */
export function canSendAgain({ input, init, body }: Hop): boolean {
  return isRequest(input) && init.body === undefined ? body === null : canResend(body)
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
  const url = new URL(asUtf8(headers.get('location')!), hop.url)
  if (url.hash === '') url.hash = hop.url.hash
  if (!isHttp(url)) throw new TypeError('fetch failed', { cause: new Error('redirect to another protocol') })
  const isSameOrigin = url.origin === hop.url.origin
  if (!isSameOrigin && (url.username !== '' || url.password !== '')) {
    throw new TypeError('fetch failed', { cause: new Error('redirect with credentials to another origin') })
  }
  const becomesGet =
    status === 303 ? hop.method !== 'GET' && hop.method !== 'HEAD' : status < 303 && hop.method === 'POST'
  if (!becomesGet && !canSendAgain(hop)) {
    throw new TypeError('fetch failed', { cause: new Error('redirect of a request whose body is a stream') })
  }
  const own = new Headers(hop.headers)
  if (becomesGet) for (const name of OF_BODY) own.delete(name)
  if (!isSameOrigin) for (const name of OF_ORIGIN) own.delete(name)
  const { body: _, duplex: __, ...rest } = { ...settingsOf(hop.input), ...hop.init } as FetchInit
  const method = becomesGet ? 'GET' : hop.method
  const keepsBody = !becomesGet && hop.body !== null && hop.body !== undefined
  const init = { ...rest, method, headers: own, ...(hop.signal && { signal: hop.signal }) } as FetchInit
  if (keepsBody) init.body = hop.body as NonNullable<FetchInit['body']>
  return { ...hop, input: url.href, init, url, method, headers: own, body: init.body ?? null }
}

function settingsOf(input: FetchInput): FetchInit {
  if (!isRequest(input)) return {}
  const request = input as unknown as Readonly<Record<string, unknown>>
  return Object.fromEntries(
    SETTINGS.flatMap((name) => (request[name] === undefined ? [] : [[name, request[name]]])),
  )
}

/** A header as it was sent: `fetch` shows each byte as one character. */
function asUtf8(text: string): string {
  return /[\x80-\xff]/.test(text) ? Buffer.from(text, 'latin1').toString() : text
}
