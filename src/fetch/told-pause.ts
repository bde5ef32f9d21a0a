/**
 * Reads from the headers of an answer how long its server wants no more requests: `Retry-After` (RFC 9110,
 * section 10.2.3), and the `RateLimit` fields of all IETF drafts and of the time before them.
 */
import { type Item, parseDictionary, parseList } from './structured-fields.js'

/** Returns the value of a header by its name in lower case; undefined or null without it. */
export type HeaderOf = (name: string) => string | null | undefined

/** A longer pause is cut to a leap year: a limiter takes one above 4 years for a block without end. */
const LONGEST_PAUSE_MS = 366 * 86_400_000
/** A reset above this is a date in seconds: it would be 31 years from now. */
const LEAST_EPOCH_SECONDS = 1e9
/** A reset above this is a date in milliseconds. */
const LEAST_EPOCH_MS = 1e11

/** One quota of a server: what it has left, and the time to its reset if the server told it. */
interface Quota {
  readonly remaining: number
  readonly resetMs: number | undefined
}

/**
 * How long a server told its clients to wait, in milliseconds: 0 to a year; undefined if it told nothing.
 * `Retry-After` comes before the quotas, as the drafts have it. Otherwise the quotas with nothing left count,
 * and of these the one that is reset last. A date is compared with the header `Date` of the same answer, so
 * that the clocks of client and server may differ. Values that are malformed or negative count as not told.
 * @param nowMs the client's time in epoch milliseconds, for an answer without `Date`
 */
export function toldPauseMs(headerOf: HeaderOf, nowMs = Date.now()): number | undefined {
  const serverMs = parseHttpDate(headerOf('date') ?? '') ?? nowMs
  const told = [retryAfterMs(headerOf('retry-after') ?? '', serverMs)]
  if (told[0] === undefined) {
    for (const { remaining, resetMs } of quotasIn(headerOf, serverMs)) if (remaining <= 0) told.push(resetMs)
  }
  const known = told.filter((ms) => ms !== undefined)
  return known.length === 0 ? undefined : Math.min(Math.max(...known), LONGEST_PAUSE_MS)
}

const SECONDS = /^\d+(?:\.\d+)?$/

/** `Retry-After`: seconds, or a date. Some servers send fractions of a second, which are taken as they are. */
function retryAfterMs(value: string, serverMs: number): number | undefined {
  const text = value.trim()
  if (SECONDS.test(text)) return Number(text) * 1_000
  const date = parseHttpDate(text)
  return date === undefined ? undefined : Math.max(date - serverMs, 0)
}

const DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)'
const WEEKDAY = '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day'
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)'
const TIME = '\\d\\d:\\d\\d:\\d\\d'
/** The preferred form of a date, and the two obsolete ones. */
const WITH_ZONE = new RegExp(
  `^(?:${DAY}, \\d\\d ${MONTH} \\d{4} ${TIME}|${WEEKDAY}, \\d\\d-${MONTH}-\\d\\d ${TIME}) GMT$`,
)
const ASCTIME = new RegExp(`^${DAY} ${MONTH} [ \\d]\\d ${TIME} \\d{4}$`)

/**
 * The epoch milliseconds of a date of HTTP (RFC 9110, section 5.6.7), or undefined. `Date.parse` alone accepts
 * almost any text: it takes `-5` for a day in 2001.
 */
export function parseHttpDate(text: string): number | undefined {
  const isLocal = ASCTIME.test(text)
  if (!isLocal && !WITH_ZONE.test(text)) return undefined
  const ms = Date.parse(isLocal ? `${text} GMT` : text)
  return Number.isNaN(ms) ? undefined : ms
}

/** The quotas of every form that the answer has. */
function quotasIn(headerOf: HeaderOf, serverMs: number): Quota[] {
  return [
    ...combinedQuotas(headerOf('ratelimit') ?? '', serverMs),
    ...['ratelimit', 'x-ratelimit', 'x-rate-limit'].flatMap((prefix) =>
      separateQuotas(headerOf(`${prefix}-remaining`), headerOf(`${prefix}-reset`), serverMs),
    ),
  ]
}

/** The field `RateLimit`: from draft 8 on a list, in draft 7 a dictionary. */
function combinedQuotas(text: string, serverMs: number): Quota[] {
  const list = parseList(text)
  if (list !== undefined) {
    return list.flatMap(({ params }) => quotaOf(params.get('r'), params.get('t'), serverMs))
  }
  const members: ReadonlyMap<string, Item> = parseDictionary(text) ?? new Map()
  return quotaOf(members.get('remaining')?.value, members.get('reset')?.value, serverMs)
}

function quotaOf(remaining: unknown, reset: unknown, serverMs: number): Quota[] {
  if (typeof remaining !== 'number') return []
  return [{ remaining, resetMs: typeof reset === 'number' ? resetMsOf(reset, serverMs) : undefined }]
}

/**
 * Two fields, of draft 6 and of the time before the drafts. If several limiters of a server have written
 * them, each has several values.
 */
function separateQuotas(
  remaining: string | null | undefined,
  reset: string | null | undefined,
  serverMs: number,
): Quota[] {
  if (remaining == null) return []
  const resets = (reset ?? '').split(',').map((each) => each.trim())
  return remaining.split(',').flatMap((each, i) => {
    if (!/^-?\d+$/.test(each.trim())) return []
    const own = resets[i] ?? ''
    return quotaOf(Number(each), SECONDS.test(own) ? Number(own) : undefined, serverMs)
  })
}

/** The time to a reset that is given in seconds, or as a date in epoch seconds or milliseconds. */
function resetMsOf(reset: number, serverMs: number): number | undefined {
  if (reset < 0) return undefined
  if (reset < LEAST_EPOCH_SECONDS) return reset * 1_000
  const date = reset < LEAST_EPOCH_MS ? reset * 1_000 : reset
  return Math.max(date - serverMs, 0)
}
