/**
 * The arguments of a call of `fetch`. `fetch` reads them when it is called. A limited call may be sent later, and
 * more than once, so it reads each of them once, and hands on what it has read.
 */
import { takeBody } from './body.js'

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

/** What `fetch` reads of its second argument, inherited or not. A function of another maker may read more. */
const MEMBERS = [
  'body',
  'cache',
  'credentials',
  'dispatcher',
  'duplex',
  'headers',
  'integrity',
  'keepalive',
  'method',
  'mode',
  'priority',
  'redirect',
  'referrer',
  'referrerPolicy',
  'signal',
  'window',
]

/** Whether an input is a `Request`, of whichever `fetch`. All else is a URL by its text. */
export const isRequest = (input: FetchInput): input is RequestLike =>
  typeof input === 'object' &&
  (input as { [Symbol.toStringTag]?: unknown })?.[Symbol.toStringTag] === 'Request'

/** @throws TypeError as `fetch` rejects with, if it is no object */
export function readInit(init: unknown): FetchInit {
  if (init === undefined || init === null) return {}
  if (typeof init !== 'object' && typeof init !== 'function') throw new TypeError('init is no object')
  const names = new Set(MEMBERS)
  for (const name in init) names.add(name)
  const own: Record<string, unknown> = {}
  for (const name of names) {
    const value = (init as Readonly<Record<string, unknown>>)[name]
    if (value !== undefined) own[name] = value
  }
  const { method, headers, body } = own
  const read: FetchInit = own
  if (method !== undefined) read.method = `${method}`
  if (headers !== undefined) read.headers = readHeaders(headers)
  if (body !== undefined) read.body = takeBody(body) as NonNullable<FetchInit['body']>
  return read
}

type ReadHeaders = Headers | [string, string][]

/** The headers of a call, to be read as often as needed. The case of names is that of the caller. */
export function readHeaders(headers: unknown): ReadHeaders {
  if (headers instanceof Headers) return new Headers(headers)
  if (typeof headers !== 'object' || headers === null) throw new TypeError('headers are no object')
  const pairs: Iterable<unknown> = Symbol.iterator in headers ? (headers as never) : Object.entries(headers)
  return Array.from(pairs, (pair) => [...(pair as Iterable<string>)] as [string, string])
}

/** The same headers without some, whose names are in small letters. */
export function withoutHeaders(headers: RequestInit['headers'], names: readonly string[]): ReadHeaders {
  const read = readHeaders(headers)
  if (Array.isArray(read)) return read.filter(([name]) => !names.includes(name.toLowerCase()))
  for (const name of names) read.delete(name)
  return read
}
