import type { RemoteRule } from '../../remote/remote-rule.js'
import type { Operation } from '../../remote/remote-store.js'
import { OPERATION_LETTER } from '../script-codes.js'

/** One call of a store with a script of its own. */
export interface CountingCall {
  readonly op: Operation
  /** A test's time in milliseconds; 0: that of the server. */
  readonly timeMs: number
  readonly rules: readonly RemoteRule[]
  /** The limits of the call in units, where it has some. */
  readonly limits: readonly (number | undefined)[] | undefined
  /** For each key its name in each rule. */
  readonly names: readonly string[]
  /** For each name the cost, in units. For `block` and `usage`: milliseconds. */
  readonly costs: readonly number[]
  /** Further arguments of the operation. */
  readonly more: readonly string[]
}

/** Arguments before those of the rules: the operation, a test's time, the number of rules. */
export const FIRST_ARGUMENTS = 3
/** Arguments of each rule: flags, shape, limit, window in milliseconds, most entries. */
export const RULE_ARGUMENTS = 5

/** The arguments of a script. */
export function argumentsOf({ op, timeMs, rules, limits, costs, more }: CountingCall): string[] {
  const args = [OPERATION_LETTER[op], String(timeMs), String(rules.length)]
  for (const [i, { rule, flags, shape, windowMs }] of rules.entries()) {
    const limit = limits?.[i] ?? rule.limit
    args.push(String(flags), String(shape), String(limit), String(windowMs), String(rule.units))
  }
  for (const cost of costs) args.push(String(cost))
  args.push(...more)
  return args
}
