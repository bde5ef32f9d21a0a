import { commonTime } from './logged-time.js'

/** One request of an access log. */
export interface LoggedRequest {
  /** Milliseconds since 1970. */
  readonly atMs: number
  /** The client's address or host name. */
  readonly ip: string
  /** The authenticated user; `-` if there is none. */
  readonly user: string
  /** The first line of the request as logged: method, target and version. */
  readonly request: string
}

const QUOTED = '"[^"\\\\]*(?:\\\\.[^"\\\\]*)*"'
/**
 * Excludes a user that begins with `- `. Such a line has the virtual host in front (Apache's
 * `vhost_combined`), so that its first field is the same for every client.
 */
const USER = '(?!- [^[]).+?'
/**
 * host ident user [time] "request" status bytes; the Combined format adds "referrer" "agent". More fields may
 * follow.
 */
const LINE = new RegExp(
  `^(\\S+) \\S+ (${USER}) \\[(\\d\\d/[A-Z][a-z]{2}/\\d{4}:\\d\\d:\\d\\d:\\d\\d [+-]\\d{4})\\] (${QUOTED}) (?:\\d{3}|-) (?:\\d+|-)(?: ${QUOTED} ${QUOTED})?(?: .*)?$`,
)

/**
 * Parses a line of the Common or Combined Log Format (Apache's mod_log_config,
 * https://httpd.apache.org/docs/2.4/logs.html). Returns undefined for other lines and for invalid times.
 */
export function parseLine(line: string): LoggedRequest | undefined {
  const [, ip, user, time, quoted] = LINE.exec(line) ?? []
  const atMs = time === undefined ? undefined : commonTime(time)
  if (atMs === undefined) return undefined
  return { atMs, ip: ip!, user: user!, request: quoted!.slice(1, -1) }
}
