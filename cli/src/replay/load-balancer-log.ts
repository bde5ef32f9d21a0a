import { isIP } from 'node:net'
import type { LoggedRequest } from './access-log.js'
import { timeOf } from './logged-time.js'

const FIELD = /"(?:[^"\\]|\\.)*"|\S+/g

/** Where the fields of a line are. */
interface Places {
  readonly client: number
  readonly request: number
  /** The first of them that is a time holds. */
  readonly times: readonly number[]
}

/** https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html */
const APPLICATION: Places = { client: 3, request: 12, times: [21, 1] } // the request's creation, then that of the entry
const TYPES = /^(?:https?|h2|grpcs|wss?) /
/** https://docs.aws.amazon.com/elasticloadbalancing/latest/classic/access-log-collection.html */
const CLASSIC: Places = { client: 2, request: 11, times: [0] }

/** A line of an Application Load Balancer. Undefined for other lines. */
export const parseApplication = (line: string): LoggedRequest | undefined =>
  TYPES.test(line) ? parse(line, APPLICATION) : undefined

/** A line of a Classic Load Balancer. Undefined for other lines. */
export const parseClassic = (line: string): LoggedRequest | undefined => parse(line, CLASSIC)

function parse(line: string, { client, request, times }: Places): LoggedRequest | undefined {
  const fields = line.match(FIELD) ?? []
  const atMs = times.map((place) => timeOf(fields[place])).find((time) => time !== undefined)
  const ip = addressOf(fields[client] ?? '')
  const quoted = fields[request]
  if (atMs === undefined || ip === undefined || !quoted?.startsWith('"')) return undefined
  return { atMs, ip, user: '-', request: quoted.slice(1, -1) }
}

/** The address in `192.0.2.7:2817`, `2001:db8::1:2817` or `[2001:db8::1]:2817`. */
export function addressOf(client: string): string | undefined {
  const address = client.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
  return isIP(address) === 0 ? undefined : address
}
