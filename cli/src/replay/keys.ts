import { InvalidArgumentError } from 'commander'
import type { LoggedRequest } from './access-log.js'

/** What a limit may be counted by: one of these, or several joined by `+`. */
export const FIELDS = ['ip', 'user', 'path'] as const
type Field = (typeof FIELDS)[number]

/** By what requests are told apart, such as `ip+path`. */
export interface Key {
  readonly name: string
  /** Two requests count together where this is the same. A log's line has no line feed, so no two keys run together. */
  of(request: LoggedRequest): string
  /** Whether requests without a user are counted by their address for want of one. */
  readonly needsUser: boolean
}

/** @throws InvalidArgumentError for what is no field, or names one twice */
export function parseKey(name: string): Key {
  const fields = name.split('+') as Field[]
  const areFields = fields.every((field) => FIELDS.includes(field))
  if (!areFields || new Set(fields).size < fields.length)
    throw new InvalidArgumentError('Give ip, user or path, or several of them joined by +, such as ip+path.')
  const needsUser = fields.includes('user') && !fields.includes('ip')
  return {
    name,
    needsUser,
    of: (request) => fields.map((field) => value(request, field, needsUser)).join('\n'),
  }
}

/** A key as people read it. */
export function readable(key: string): string {
  return key.replaceAll('\n', ' ')
}

export function hasUser({ user }: LoggedRequest): boolean {
  return user !== '-' && user !== '""'
}

function value(request: LoggedRequest, field: Field, needsUser: boolean): string {
  if (field === 'ip') return request.ip
  if (field === 'path') return path(request.request)
  if (hasUser(request)) return request.user
  // One key for all who have not logged in would refuse nearly all of them: a server limits those by their address.
  return needsUser ? `- ${request.ip}` : '-'
}

/** method target [HTTP/version]; a target may have spaces where a server logs what it was sent. */
const REQUEST = /^\S+ +(\S.*?)(?: +HTTP\/[\d.]+)?$/
const ORIGIN = /^https?:\/\/[^/?#]*/i

/** Of `GET /a?b=c HTTP/1.1` it is `/a`, as it was sent; `-` where the request is none, such as TLS to a plain port. */
function path(request: string): string {
  const [, target] = REQUEST.exec(request) ?? []
  if (target === undefined) return '-'
  const inside = target.replace(ORIGIN, '') // a proxy is asked for a whole address
  const end = inside.search(/[?#]/)
  return (end < 0 ? inside : inside.slice(0, end)) || '/'
}
