// The option `keyHeader`: a balancer sends each key to its engine by the header X-Millrace-Key.
import { isUtf8 } from 'node:buffer'
import type { FastifyInstance } from 'fastify'
import { ServiceError } from './problem.js'

const HEADER = 'x-millrace-key'
/** Requests that act on the counts of keys. `/v1/auth` has its key in the header anyway. */
const ROUTES = /^\/v1\/(check|peek|reserve|commit|refund|penalize|block|unblock|clear|usage)$/

interface Keyed {
  key?: unknown
}

/**
 * Takes the key of each request from its header. A request whose keys differ from it belongs to other engines, too, and
 * is refused before anything is charged.
 */
export function takeKeyHeader(app: FastifyInstance): void {
  app.addHook('preValidation', ({ headers, routeOptions, body }, _reply, done) => {
    if (!ROUTES.test(routeOptions.url ?? '')) return done()
    const header = headers[HEADER]
    if (typeof header !== 'string' || header === '') return done(missing())
    const key = keyIn(header)
    const { token, reservation, checks } = Object(body) as Record<string, unknown>
    if (Array.isArray(checks)) {
      const keyed = checks.filter(isObject)
      for (const check of keyed) check.key ??= key
      const other = keyed.findIndex((check) => check.key !== key)
      return other < 0 ? done() : done(several(`checks[${other}].key`))
    }
    if (!isObject(body) || typeof token === 'string' || typeof reservation === 'string') return done()
    body.key ??= key
    return body.key === key ? done() : done(several('key'))
  })
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
