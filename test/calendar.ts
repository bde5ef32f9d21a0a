// The periods of time zones by the package temporal-polyfill: another calculation than that of the library.
import type { Period } from 'millrace'
import { Temporal } from 'temporal-polyfill'

/** The first day of the period that has this date. */
function firstOf(period: Period, date: Temporal.PlainDate): Temporal.PlainDate {
  if (period === 'week') return date.subtract({ days: date.dayOfWeek - 1 })
  if (period === 'month') return date.with({ day: 1 })
  return period === 'year' ? date.with({ month: 1, day: 1 }) : date
}

const startIn = (timeZone: string, date: Temporal.PlainDate): number =>
  date.toZonedDateTime({ timeZone }).epochMilliseconds

/** By the definition: `[start, end)` of the period. */
export function boundsOf(period: Period, timeZone: string, ms: number): readonly [number, number] {
  const { year, month, day } = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timeZone)
  let first = firstOf(period, Temporal.PlainDate.from({ year, month, day }))
  const next = () => first.add({ [`${period}s`]: 1 })
  if (startIn(timeZone, next()) <= ms) first = next() // clocks were put back over midnight
  return [startIn(timeZone, first), startIn(timeZone, next())]
}
