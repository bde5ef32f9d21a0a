import { createHash } from 'node:crypto'
import type { Rules } from './core/rule.js'

/** What the memory of a policy depends on: everything but the limits that a call may have. */
export interface PolicyShape {
  /** The same text for policies that can count in the same cells. */
  readonly text: string
  /** A number of 31 bits from the text, above 0. */
  readonly tag: number
  readonly rules: Rules
}

/**
 * Cells of a window count by any limit. Those of a bucket and of a log are made for one: such rules with other limits
 * have other shapes.
 */
export function policyShapeOf(rules: Rules): PolicyShape {
  const text = JSON.stringify(
    rules.map(({ limit, ...rule }) => {
      const isMadeFor = rule.units > 0 || rule.rate !== undefined
      return isMadeFor ? { ...rule, limit } : rule
    }),
  )
  const tag = createHash('sha256').update(text).digest().readUInt32LE(0) & 0x7fffffff || 1
  return { text, tag, rules }
}
