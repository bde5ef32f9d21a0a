import { isIPv6 } from 'node:net'
import { InvalidArgumentError } from 'commander'
import { ipKey } from 'millrace/http'
import type { LoggedRequest } from './access-log.js'

/** The fields of a key. A key has one field, or several joined by `+`. */
export const FIELDS = ['ip', 'user', 'path'] as const
type Field = (typeof FIELDS)[number]

/** The key that requests count by, such as `ip+path`. */
export interface Key {
  readonly name: string
  /**
   * The key of a request. A line feed separates the fields; a log's line has none, so keys stay unambiguous.
   */
  of(request: LoggedRequest): string
  /** Whether requests without a user count by their address. */
  readonly needsUser: boolean
}

/** @throws InvalidArgumentError for an unknown or repeated field */
export function parseKey(name: string): Key {
  const fields = name.split('+') as Field[]
  const areFields = fields.every((field) => FIELDS.includes(field))
  if (!areFields || new Set(fields).size < fields.length)
    throw new InvalidArgumentError(
      'Expected ip, user or path, or several of them joined by +, such as ip+path.',
    )
  const needsUser = fields.includes('user') && !fields.includes('ip')
  return {
    name,
    needsUser,
    of: (request) => fields.map((field) => value(request, field, needsUser)).join('\n'),
  }
}

/** A key for display. */
export function readable(key: string): string {
  return key.replaceAll('\n', ' ')
}

export function hasUser({ user }: LoggedRequest): boolean {
  return user !== '-' && user !== '""'
}

function value(request: LoggedRequest, field: Field, needsUser: boolean): string {
  if (field === 'ip') return keyOf(request.ip)
  if (field === 'path') return path(request.request)
  if (hasUser(request)) return keyOf(request.user) // a field that is named may be an address, such as that of a header
  // One key for all anonymous requests would refuse nearly all of them; servers limit these by address.
  return needsUser ? `- ${keyOf(request.ip)}` : '-'
}

const byAddress = ipKey()

/** The key of the middleware for an IPv6 address: its network. Other text is its own key; so is an IPv4 address there. */
const keyOf = (text: string): string => (isIPv6(text) ? byAddress.keyOf(text) : text)

/** method target [HTTP/version]. The target may contain spaces, as servers log requests unchanged. */
const REQUEST = /^\S+ +(\S.*?)(?: +HTTP\/[\d.]+)?$/
const ORIGIN = /^https?:\/\/[^/?#]*/i

/**
 * The path of a request: `/a` for `GET /a?b=c HTTP/1.1`; `-` for an invalid request, such as TLS on a plain
 * port.
 */
function path(request: string): string {
  const [, target] = REQUEST.exec(request) ?? []
  if (target === undefined) return '-'
  const inside = target.replace(ORIGIN, '') // requests to a proxy have a full URL
  const end = inside.search(/[?#]/)
  return (end < 0 ? inside : inside.slice(0, end)) || '/'
}
