import type { RemoteRule } from '../../remote/remote-rule.js'

/**
 * The bounds of a calendar that a call sends: the script takes the period in which the time of the server lies. So the
 * clock of this process may be two periods off.
 */
const AROUND = 2
/** Of so many periods, and the end of the last one. */
export const BOUNDS = 2 * AROUND + 2

/** How many of the first `index` rules have a calendar. */
export const calendarsBefore = (rules: readonly RemoteRule[], index: number): number =>
  rules.slice(0, index).filter(({ calendar }) => calendar !== undefined).length

/** The arguments of all rules with a calendar, by the clock of this process. */
export function boundsOf(rules: readonly RemoteRule[], nowMs: number): string[] {
  return rules.flatMap(({ calendar }) => {
    if (calendar === undefined) return []
    const { number } = calendar.at(nowMs)
    return Array.from({ length: BOUNDS }, (_, i) => String(calendar.startOf(number - AROUND + i)))
  })
}
