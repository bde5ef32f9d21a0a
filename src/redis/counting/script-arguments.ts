import type { CountingCall } from '../../remote/counting-call.js'
import { OPERATION_LETTER } from '../script-codes.js'

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
