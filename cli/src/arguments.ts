import { InvalidArgumentError } from 'commander'
import type { Duration } from 'millrace'
import { parseDuration } from 'millrace/internal'

/** Parses an option's value: a whole number of at least 1. */
export function positiveInteger(text: string): number {
  const number = Number(text)
  if (!/^\d+$/.test(text) || number < 1)
    throw new InvalidArgumentError('Expected a whole number of 1 or more.')
  return number
}

/**
 * Parses a duration. The unit is required, because the library reads a bare 60 as milliseconds, and users
 * mean seconds.
 */
export function duration(text: string): Duration {
  if (/^\d+(\.\d+)?$/.test(text))
    throw new InvalidArgumentError(`Add a unit, such as ${text}s, ${text}m or ${text}ms.`)
  try {
    parseDuration(text, 'duration')
  } catch {
    throw new InvalidArgumentError('Expected a duration above 0, such as 250ms, 10s, 15m, 1h or 30d.')
  }
  return text as Duration
}
