import { createHash } from 'node:crypto'
import type { Policy } from '../config/policy.js'
import type { Rules } from '../core/rule.js'

/** What the memory of a policy depends on: everything but the limits that a call may have. */
export interface PolicyShape {
  /** The same text for policies that can count in the same cells. */
  readonly text: string
  /** A number of 31 bits from the text, above 0. */
  readonly tag: number
  readonly rules: Rules
  /** A policy of this shape, as it is written. */
  readonly policy?: Policy | undefined
}

/**
 * Cells of a window count by any limit. Those of a bucket and of a log are made for one: such rules with other limits
 * have other shapes.
 */
export function policyShapeOf(rules: Rules, policy?: Policy): PolicyShape {
  const text = JSON.stringify(
    rules.map(({ limit, period, ...rule }) => {
      const isMadeFor = rule.units > 0 || rule.rate !== undefined
      return { ...rule, ...(isMadeFor && { limit }), ...(period !== 'none' && { period }) }
    }),
  )
  return { text, tag: tagOf(text), rules, policy }
}

/** A number of 31 bits from a text, above 0. */
export const tagOf = (text: string): number =>
  createHash('sha256').update(text).digest().readUInt32LE(0) & 0x7fffffff || 1

/** How names of keys show a tag. */
export const shownTag = (tag: number): string => tag.toString(16).padStart(8, '0')
