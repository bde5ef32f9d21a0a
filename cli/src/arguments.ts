import { InvalidArgumentError } from 'commander'
import type { Duration } from 'millrace'
import { parseDuration } from 'millrace/internal'

/** An option's value of 1 or more. */
export function positiveInteger(text: string): number {
  const number = Number(text)
  if (!/^\d+$/.test(text) || number < 1) throw new InvalidArgumentError('Give a whole number of 1 or more.')
  return number
}

/** A duration with its unit: a bare number is milliseconds to the library, and whoever types 60 means something else. */
export function duration(text: string): Duration {
  if (/^\d+(\.\d+)?$/.test(text))
    throw new InvalidArgumentError(`Give it a unit, such as ${text}s, ${text}m or ${text}ms.`)
  try {
    parseDuration(text, 'duration')
  } catch {
    throw new InvalidArgumentError('Give a duration above 0 such as 250ms, 10s, 15m, 1h or 30d.')
  }
  return text as Duration
}
