import { emitWarning } from 'node:process'
import { roundGranularityFrom } from '../core/granularity.js'
import type { Rule, Rules } from '../core/rule.js'
import { planFor } from '../memory/arenas.js'
import { setsFor, shapeFor, sumsFor } from '../memory/layout.js'

const GIB = 2 ** 30

let hasWarned = false

/**
 * Warns once in a process about an arena that may grow beyond 1 GiB, and names an option that avoids it. It
 * is easy to ask for a window of a day with a granularity of a second. (Untouched memory costs nothing; the
 * arena grows with its keys.)
 */
export function warnIfLarge(rules: Rules, bytes: number, maxKeys: number): void {
  const gib = bytes / GIB
  if (hasWarned || gib <= 1) return
  hasWarned = true
  const buckets = rules.map((rule) => rule.buckets).join(' and ')
  const takes = `maxKeys ${maxKeys} with ${buckets} buckets take up to ${gib.toFixed(1)} GiB`
  emitWarning(`${takes}; ${smallerOption(rules, maxKeys)} would bring it under 1 GiB`, {
    type: 'MillraceWarning',
    code: 'MILLRACE_LARGE_ARENA',
  })
}

function smallerOption(rules: Rules, maxKeys: number): string {
  const [rule, ...others] = rules
  if (others.length === 0) return smallerOptionOf(rule, maxKeys)
  const fits = (keys: number) => 4 * planFor(rules, keys).words <= GIB
  return `maxKeys ${largest(maxKeys, fits)}`
}

function smallerOptionOf(rule: Rule, maxKeys: number): string {
  const { windowMs } = rule
  const fits = (buckets: number, keys: number) =>
    4 * shapeFor(windowMs, buckets, setsFor(keys), sumsFor(buckets, rule.rangeSum), rule).words <= GIB
  if (!fits(1, maxKeys))
    return `maxKeys ${largest(maxKeys, (keys) => fits(1, keys))} at a granularity of the whole window`
  const buckets = largest(rule.buckets, (n) => fits(n, maxKeys))
  return `granularity '${roundGranularityFrom(windowMs / buckets, windowMs)}'`
}

/**
 * The largest number from 1 to `most` that fits. A number below one that fits also fits, with few exceptions.
 */
function largest(most: number, fits: (n: number) => boolean): number {
  let low = 1
  let high = most
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (fits(middle)) low = middle
    else high = middle - 1
  }
  return low
}
