import { InvalidArgumentError } from 'commander'
import type { Duration } from 'millrace'
import { formatDuration, parseDuration } from 'millrace/internal'

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

/** A limit and its window. */
export interface LimitIn<Limit = number> {
  /** Such as `10/1s`. The same limit and window have the same name. */
  readonly name: string
  readonly limit: Limit
  readonly window: Duration
}

/** Parses one more value of a repeated option: a limit and a window, such as `10/1s`. */
export function limitIn(text: string, others?: readonly LimitIn[]): LimitIn[] {
  return moreLimits(text, others, /^(\d+)\/(.+)$/, positiveInteger)
}

/** The same of a policy, whose limit may also be 0 or `unlimited`. */
export function policyLimitIn(
  text: string,
  others?: readonly LimitIn<number | 'unlimited'>[],
): LimitIn<number | 'unlimited'>[] {
  return moreLimits(text, others, /^(\d+|unlimited)\/(.+)$/, (limit) =>
    limit === 'unlimited' ? limit : Number(limit),
  )
}

function moreLimits<Limit>(
  text: string,
  others: readonly LimitIn<Limit>[] = [],
  form: RegExp,
  limitOf: (text: string) => Limit,
): LimitIn<Limit>[] {
  const [, count, length] = form.exec(text) ?? []
  if (count === undefined || length === undefined)
    throw new InvalidArgumentError('Expected a limit and a window, such as 10/1s or 1000/1h.')
  const limit = limitOf(count)
  const window = duration(length)
  const name = `${limit}/${formatDuration(parseDuration(window, 'window'))}`
  if (others.some((other) => other.name === name))
    throw new InvalidArgumentError(`Expected another rule than ${name}, which is given already.`)
  return [...others, { name, limit, window }]
}
