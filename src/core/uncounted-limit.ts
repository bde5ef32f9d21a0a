/**
 * The limits that need no count: 0 refuses each cost above 0, and `Infinity` admits each and charges nothing. Calls and
 * policies may have them. The cells of a rule are made for a limit from 1 on.
 */

/** `Infinity`, as JSON and YAML write it. */
export const UNLIMITED = 'unlimited'

export const isUncounted = (limit: number): boolean => limit === 0 || limit === Number.POSITIVE_INFINITY

/** The limit as a number, if it is one of the two. */
export function uncountedLimitIn(limit: unknown): number | undefined {
  if (limit === UNLIMITED) return Number.POSITIVE_INFINITY
  return typeof limit === 'number' && isUncounted(limit) ? limit : undefined
}
