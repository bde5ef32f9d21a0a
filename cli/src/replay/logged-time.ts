/** Times as logs write them. All results are whole milliseconds since 1970; undefined for what is no time. */

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
/** `09/Mar/2026:14:05:09 +0000`, of the Common Log Format. */
const COMMON = /^(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)$/
/** ISO 8601 with a date, a time and a zone. Without a zone it is UTC. */
const ISO = /^(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?:Z|([+-])(\d\d):?(\d\d))?$/
const NUMBER = /^\d+(?:\.\d+)?$/
/** The units of times that are numbers: below which number, and its milliseconds. */
const UNITS: readonly (readonly [below: number, ms: number])[] = [
  [1e11, 1e3], // seconds: until the year 5138
  [1e14, 1], // milliseconds: from 1973 on
  [1e17, 1e-3],
  [Number.POSITIVE_INFINITY, 1e-6],
]

/** A number since 1970, of seconds, milliseconds, microseconds or nanoseconds by its size; ISO 8601; or as in the Common Log Format. */
export function timeOf(value: unknown): number | undefined {
  if (typeof value === 'number') return numberOf(value)
  if (typeof value !== 'string') return undefined
  return NUMBER.test(value) ? numberOf(Number(value)) : (isoTime(value) ?? commonTime(value))
}

function numberOf(value: number): number | undefined {
  if (!Number.isFinite(value) || value < 0) return undefined
  const [, ms] = UNITS.find(([below]) => value < below)!
  return Math.round(value * ms)
}

function isoTime(text: string): number | undefined {
  const [, year, month, day, hour, minute, second, fraction = '', sign, zoneHours, zoneMinutes] =
    ISO.exec(text) ?? []
  const ms = Number(fraction.padEnd(3, '0').slice(0, 3))
  return utcMs([year, Number(month) - 1, day, hour, minute, second], [sign, zoneHours, zoneMinutes], ms)
}

export function commonTime(text: string): number | undefined {
  const [, day, month = '', year, hour, minute, second, sign, zoneHours, zoneMinutes] =
    COMMON.exec(text) ?? []
  return utcMs([year, MONTHS.indexOf(month), day, hour, minute, second], [sign, zoneHours, zoneMinutes], 0)
}

type Part = string | number | undefined

/** Parts that are missing are NaN, and make no time. */
function utcMs(moment: readonly Part[], [sign, ...offset]: readonly Part[], ms: number): number | undefined {
  const [year, month, day, hour, minute, second] = moment.map(Number) as [
    number,
    ...[number, number, number, number, number],
  ]
  const [zoneHours, zoneMinutes] = offset.map((part) => Number(part ?? 0)) as [number, number]
  if (!(year >= 1970 && hour <= 23 && minute <= 59 && second <= 60)) return undefined // a leap second has 60
  if (zoneHours > 23 || zoneMinutes > 59) return undefined
  const midnight = new Date(Date.UTC(year, month, day))
  if (midnight.getUTCMonth() !== month || midnight.getUTCDate() !== day) return undefined
  const zone = (zoneHours * 60 + zoneMinutes) * (sign === '-' ? -1 : 1)
  return midnight.getTime() + (hour * 60 + minute - zone) * 60_000 + second * 1_000 + ms
}
