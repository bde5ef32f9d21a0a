import type { Decision } from '../core/decision.js'
import { checkDelay } from './options.js'

/** How long requests wait that are slowed down instead of refused. */
export interface Delays {
  /** Milliseconds for an admitted request, 0 or more. */
  afterAdmission(decision: Decision): number
  /** Milliseconds for a request over the limit: as for the first one above it. */
  afterRefusal(decision: Decision): number
}

/** Checks the option `delay`. Undefined without it. */
export function delaysOf(delay: unknown): Delays | undefined {
  const checked = checkDelay(delay)
  if (checked === undefined) return undefined
  const { after, ms, maxMs } = checked
  const msAt = (used: number) => Math.min(Math.max(0, used - after) * ms, maxMs)
  return {
    afterAdmission: ({ limit, remaining }) => msAt(limit - remaining),
    afterRefusal: ({ limit }) => msAt(limit + 1),
  }
}
