import { InvalidArgumentError } from 'commander'
import { type Duration, parseDuration } from '../core/duration.js'

/** An option's value of 1 or more. */
export function positiveInteger(text: string): number {
  const number = Number(text)
  if (!/^\d+$/.test(text) || number < 1) throw new InvalidArgumentError('Give a whole number of 1 or more.')
  return number
}

/** A duration with its unit: bare numbers are milliseconds to the library, and seconds to whoever types one. */
export function duration(text: string): Duration {
  try {
    if (/^[\d.]+$/.test(text)) throw new TypeError('no unit')
    parseDuration(text as Duration, 'duration')
  } catch {
    throw new InvalidArgumentError('Give a duration with its unit, such as 250ms, 10s, 15m, 1h or 30d.')
  }
  return text as Duration
}
