import type { LoggedRequest } from './access-log.js'
import { timeOf } from './logged-time.js'

/** A line that has no request, such as a message of the server about itself. */
export const OTHER = 'other'

type Json = Readonly<Record<string, unknown>>

/** Where a format has what: paths of members, joined by dots. The first one that a line has holds. */
interface Places {
  readonly time: readonly string[]
  readonly ip: readonly string[]
  readonly user: readonly string[]
  readonly method: readonly string[]
  readonly target: readonly string[]
  /** Method and target in one. */
  readonly request: readonly string[]
}

interface JsonFormat extends Places {
  /** Whether a line has a request. Each request is in one such line. */
  hasRequest(line: Json): boolean
}

const NONE = { time: [], ip: [], user: [], method: [], target: [], request: [] } as const

/** `log_format access escape=json '{"time":"$time_iso8601","remote_addr":"$remote_addr", ...}'`, with the names of nginx. */
const nginx: JsonFormat = {
  ...NONE,
  time: ['time_iso8601', 'msec', 'time_local', 'time', 'timestamp', '@timestamp', 'ts'],
  ip: ['remote_addr', 'client', 'client_ip'],
  user: ['remote_user'],
  method: ['request_method', 'method'],
  target: ['request_uri', 'uri'],
  request: ['request'],
  hasRequest: (line) => 'remote_addr' in line,
}
/** pino-http logs a request when it ends; Fastify when it comes, and its end without the request. */
const pino: JsonFormat = {
  ...NONE,
  time: ['time'],
  ip: ['req.remoteAddress'],
  method: ['req.method'],
  target: ['req.url'],
  hasRequest: (line) => isObject(line.req) && ('responseTime' in line || line.msg === 'incoming request'),
}
/** https://caddyserver.com/docs/caddyfile/directives/log */
const caddy: JsonFormat = {
  ...NONE,
  time: ['ts'],
  ip: ['request.client_ip', 'request.remote_ip'],
  user: ['user_id'],
  method: ['request.method'],
  target: ['request.uri'],
  hasRequest: (line) => isObject(line.request) && 'status' in line,
}
/** https://doc.traefik.io/traefik/observe/logs-and-access-logs */
const traefik: JsonFormat = {
  ...NONE,
  time: ['StartUTC', 'StartLocal', 'time'],
  ip: ['ClientHost'],
  user: ['ClientUsername'],
  method: ['RequestMethod'],
  target: ['RequestPath'],
  hasRequest: (line) => 'ClientHost' in line,
}
const all = [nginx, pino, caddy, traefik]
const places = (name: keyof Places) => [...new Set(all.flatMap((format) => format[name]))]
/** Any JSON: a request is a line that has a time and a key, by the fields that are named. */
const json: JsonFormat = {
  time: places('time'),
  ip: places('ip'),
  user: places('user'),
  method: places('method'),
  target: places('target'),
  request: places('request'),
  hasRequest: () => true,
}

export const JSON_FORMATS = { nginx, pino, caddy, traefik, json } as const

/** Fields that the user names, by paths such as `req.headers.x-api-key`. */
export interface NamedFields {
  readonly timeField?: string | undefined
  /** What `user` of a key is. */
  readonly keyField?: string | undefined
}

/** The parser of a format's lines: undefined for what is no JSON, or has no time or client. */
export function jsonParser(
  format: JsonFormat,
  { timeField, keyField }: NamedFields,
): (line: string) => LoggedRequest | typeof OTHER | undefined {
  const fields = {
    ...format,
    ...(timeField !== undefined && { time: [timeField] }),
    ...(keyField !== undefined && { user: [keyField] }),
  }
  return (text) => {
    const line = objectIn(text)
    if (line === undefined) return undefined
    if (!format.hasRequest(line)) return OTHER
    const atMs = timeOf(first(line, fields.time))
    const user = textOf(first(line, fields.user)) || '-'
    const ip = textOf(first(line, fields.ip)) || (user === '-' ? '' : '-')
    if (atMs === undefined || ip === '') return undefined
    return { atMs, ip, user, request: requestOf(line, fields) }
  }
}

function requestOf(line: Json, { request, method, target }: Places): string {
  const whole = first(line, request)
  if (typeof whole === 'string') return whole
  return `${textOf(first(line, method)) || '-'} ${textOf(first(line, target))}`.trimEnd()
}

/** The object of a line, which begins with a brace. */
function objectIn(text: string): Json | undefined {
  if (!text.startsWith('{')) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined // counted as a line that is not understood
  }
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null

/** The value at the first path that the line has. A member whose own name has dots is found by that, too. */
function first(line: Json, paths: readonly string[]): unknown {
  for (const path of paths) {
    const found = at(line, path)
    if (found !== undefined && found !== null) return found
  }
  return undefined
}

function at(value: unknown, path: string): unknown {
  if (!isObject(value)) return undefined
  if (Object.hasOwn(value, path)) return value[path]
  for (let dot = path.indexOf('.'); dot >= 0; dot = path.indexOf('.', dot + 1)) {
    const name = path.slice(0, dot)
    const found = Object.hasOwn(value, name) ? at(value[name], path.slice(dot + 1)) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

/** Text or a number on one line; else nothing. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value.replaceAll('\n', ' ')
  return typeof value === 'number' ? String(value) : ''
}
