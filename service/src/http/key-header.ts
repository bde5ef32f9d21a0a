// The option `keyHeader`: a balancer sends each key to its engine by the header X-Millrace-Key.
import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest, FastifySchema } from 'fastify'
import type { Charges } from '../charges.js'
import { ServiceError } from './problem.js'
import { KEY } from './schemas.js'

const HEADER = 'x-millrace-key'
/** Requests that act on the counts of keys. `/v1/auth` has its key in the header anyway. */
const ROUTES = /^\/v1\/(check|peek|reserve|commit|refund|penalize|block|unblock|clear|usage)$/
/** Routes that may have the token of a charge in place of its key. */
const SETTLES = /^\/v1\/(commit|refund)$/

interface Keyed {
  key?: unknown
}

/**
 * Takes the key of each request from its header. A request whose keys differ from it belongs to other engines, too, and
 * is refused before anything is charged.
 */
export function takeKeyHeader(app: FastifyInstance, charges: Charges): void {
  app.addHook('preValidation', (request, _reply, done) => {
    try {
      if (ROUTES.test(request.routeOptions.url ?? '')) takeKey(request, charges)
    } catch (error) {
      return done(error as Error)
    }
    done()
  })
}

/** @throws ServiceError for a request without the header, and for one with another key */
function takeKey({ headers, routeOptions, body }: FastifyRequest, charges: Charges): void {
  const header = headers[HEADER]
  if (typeof header !== 'string' || header === '') throw missing()
  const key = keyIn(header)
  const { token, reservation, checks } = Object(body) as Record<string, unknown>
  if (Array.isArray(checks)) {
    const keyed = checks.filter(isObject)
    for (const check of keyed) check.key ??= key
    const other = keyed.findIndex((check) => check.key !== key)
    if (other >= 0) throw several(`checks[${other}].key`)
    return
  }
  if (SETTLES.test(routeOptions.url!) && (token !== undefined || reservation !== undefined)) {
    const field = token === undefined ? 'reservation' : 'token'
    const charge = token ?? reservation
    if (typeof charge === 'string' && charges.keyOf(charge, field) !== key) throw several(field)
    return
  }
  if (!isObject(body)) return
  body.key ??= key
  if (body.key !== key) throw several('key')
}

/** The schema of a route in `/openapi.json`: the header is required, and no key beside it. */
export function withKeyHeader({ schema, url }: { schema: FastifySchema; url: string }): {
  schema: FastifySchema
  url: string
} {
  if (!ROUTES.test(url)) return { schema, url }
  const headers = { type: 'object', properties: { [HEADER]: KEY }, required: [HEADER] }
  return { schema: { ...schema, headers, body: withoutKey(schema.body) }, url }
}

/** The same schema, with no field `key` required. */
function withoutKey(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutKey)
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema).flatMap(([name, value]) => {
      if (name !== 'required' || !Array.isArray(value)) return [[name, withoutKey(value)]]
      const required = value.filter((field) => field !== 'key')
      return required.length === 0 ? [] : [[name, required]]
    }),
  )
}

/** The same key as in a body: Node.js reads each byte of a header as a character, and clients send UTF-8. */
export function keyIn(header: string): string {
  const bytes = Buffer.from(header, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : header
}

const isObject = (value: unknown): value is Keyed =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const missing = () =>
  new ServiceError(
    400,
    'ERR_MILLRACE_KEY_HEADER',
    'X-Millrace-Key: expected the key of the request, by which the balancer chooses its engine',
    { field: HEADER, expected: 'the key of the request' },
  )

const several = (field: string) =>
  new ServiceError(
    400,
    'ERR_MILLRACE_SEVERAL_KEYS',
    `${field}: expected the key of the header X-Millrace-Key: other keys may belong to other engines`,
    { field, expected: 'the key of the header X-Millrace-Key' },
  )
