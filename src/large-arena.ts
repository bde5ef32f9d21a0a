import { emitWarning } from 'node:process'
import { type Rule, roundGranularityFrom } from './core/rule.js'
import { type Shape, setsFor, shapeFor, sumsFor } from './memory/layout.js'

const GIB = 2 ** 30

let hasWarned = false

/**
 * Warns, once in a process, that an arena may come to take more than a GiB, and names what would bring it under: hour and day
 * windows are easily asked for by the second. (Untouched memory costs nothing: it is the keys that come that fill it.)
 */
export function warnIfLarge(rule: Rule, shape: Shape, maxKeys: number): void {
  const gib = (4 * shape.words) / GIB
  if (hasWarned || gib <= 1) return
  hasWarned = true
  const takes = `maxKeys ${maxKeys} with ${rule.buckets} granules take up to ${gib.toFixed(1)} GiB`
  emitWarning(`${takes}; ${whatWouldDo(rule, maxKeys)} would bring it under 1 GiB`, {
    type: 'MillraceWarning',
    code: 'MILLRACE_LARGE_ARENA',
  })
}

function whatWouldDo(rule: Rule, maxKeys: number): string {
  const { windowMs } = rule
  const fits = (buckets: number, keys: number) =>
    4 * shapeFor(windowMs, buckets, setsFor(keys), sumsFor(buckets, rule.rangeSum)).words <= GIB
  if (!fits(1, maxKeys))
    return `maxKeys ${largest(maxKeys, (keys) => fits(1, keys))} at a granularity of the whole window`
  const buckets = largest(rule.buckets, (n) => fits(n, maxKeys))
  return `granularity '${roundGranularityFrom(windowMs / buckets, windowMs)}'`
}

/** The largest number from 1 to `most` that fits; what is smaller than one that fits does, too, but for a few. */
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
