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

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
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
  `^(\\S+) \\S+ (${USER}) \\[(\\d\\d)/([A-Z][a-z]{2})/(\\d{4}):(\\d\\d):(\\d\\d):(\\d\\d) ([+-])(\\d\\d)(\\d\\d)\\] (${QUOTED}) (?:\\d{3}|-) (?:\\d+|-)(?: ${QUOTED} ${QUOTED})?(?: .*)?$`,
)

/**
 * Parses a line of the Common or Combined Log Format (Apache's mod_log_config,
 * https://httpd.apache.org/docs/2.4/logs.html). Returns undefined for other lines and for invalid times.
 */
export function parseLine(line: string): LoggedRequest | undefined {
  const fields = LINE.exec(line)
  if (fields === null) return undefined
  const [, ip, user, day, month, year, hour, minute, second, sign, zoneHours, zoneMinutes, quoted] = fields
  const monthIndex = MONTHS.indexOf(month!)
  if (monthIndex < 0 || Number(year) < 1970) return undefined
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return undefined
  if (Number(zoneHours) > 23 || Number(zoneMinutes) > 59) return undefined
  const midnight = new Date(Date.UTC(Number(year), monthIndex, Number(day)))
  if (midnight.getUTCDate() !== Number(day)) return undefined
  const zone = (Number(zoneHours) * 60 + Number(zoneMinutes)) * (sign === '-' ? -1 : 1)
  const minutes = Number(hour) * 60 + Number(minute) - zone
  return {
    atMs: midnight.getTime() + minutes * 60_000 + Number(second) * 1_000,
    ip: ip!,
    user: user!,
    request: quoted!.slice(1, -1),
  }
}
