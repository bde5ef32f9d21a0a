import { MillraceError } from './errors.js'

/**
 * A duration: milliseconds as a number, or a number and a unit as a string, such as `'250ms'`, `'1s'`,
 * `'15m'`, `'1h'`, `'1d'`. Decimals are allowed, spaces are not. The type accepts any string, such as one
 * from the environment. A string that is not a duration throws. Editors suggest common durations.
 */
export type Duration = number | Common | (string & {})

type Common = '100ms' | '1s' | '10s' | '1m' | '15m' | '1h' | '1d'

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const PATTERN = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/
const EXPECTED = "milliseconds above 0 as a number, or one of '250ms', '1s', '15m', '1h', '30d'"

/**
 * Converts a duration to milliseconds, above 0 and finite.
 * @throws MillraceError with `code`, naming `option`
 */
export function parseDuration(
  value: unknown,
  option: string,
  code: 'ERR_MILLRACE_INVALID_DURATION' | 'ERR_MILLRACE_INVALID_RULE' = 'ERR_MILLRACE_INVALID_DURATION',
): number {
  let ms: unknown = value
  if (typeof value === 'string') {
    const [, amount, unit] = PATTERN.exec(value) ?? []
    ms = amount === undefined ? Number.NaN : Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS]
  }
  if (typeof ms !== 'number' || !(ms > 0) || ms === Number.POSITIVE_INFINITY) {
    throw new MillraceError(code, option, value, EXPECTED)
  }
  return ms
}

/** Milliseconds as a duration that says so, where a number may look like seconds. */
export const millisecondsAs = (ms: number): Duration => (ms < 1_000 ? `${ms}ms` : ms)

/** Formats milliseconds in the largest unit that divides them: 90,000 is `90s`, 86,400,000 is `1d`. */
export function formatDuration(ms: number): string {
  for (const [unit, size] of Object.entries(UNIT_MS).reverse()) {
    if (ms % size === 0) return `${ms / size}${unit}`
  }
  return `${Number(ms.toPrecision(6))}ms`
}
