/** What both facades hold their arguments to. */
import { type Duration, parseDuration } from './core/duration.js'
import { MillraceError } from './core/errors.js'
import { checkLimit } from './core/rule.js'
import type { Costs } from './engines/batch.js'

export function checkCost(cost: unknown, option = 'cost'): asserts cost is number {
  if (!(Number.isInteger(cost) && (cost as number) >= 0)) throw invalidCost(cost, option)
}

export function checkOptions(options: unknown, known: readonly string[], option = 'options'): void {
  if (typeof options !== 'object' || options === null) {
    throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, options, 'an object')
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, name, `only ${known.join(', ')}`)
    }
  }
}

export function checkCosts(costs: unknown, length: number): asserts costs is Costs {
  if (typeof costs !== 'object' || costs === null) return checkCost(costs, 'costs')
  const each = costs as ArrayLike<unknown>
  if (each.length !== length) {
    const expected = `one cost for all, or one for each of the ${length} keys`
    throw new MillraceError('ERR_MILLRACE_INVALID_COST', 'costs', costs, expected)
  }
  for (let i = 0; i < length; i++) checkCost(each[i], `costs[${i}]`)
}

export function invalidCost(cost: unknown, option = 'cost'): MillraceError {
  return new MillraceError('ERR_MILLRACE_INVALID_COST', option, cost, 'an integer of 0 or more')
}

export function closed(): MillraceError {
  return new MillraceError('ERR_MILLRACE_CLOSED', 'limiter', 'a closed one', 'a limiter that is open')
}

export function neverAdmitted(cost: number, limit: number): MillraceError {
  const [option, value, expected] =
    cost > limit
      ? ['cost', cost, `at most the limit, ${limit}`]
      : ['key', 'one that is blocked for ever', 'a key that may be admitted some time']
  return new MillraceError('ERR_MILLRACE_NEVER_ADMITTED', option as string, value, expected as string)
}

/** Whether some limiter has made it. */
export function isDecision(what: unknown): boolean {
  return typeof what === 'object' && what !== null && 'retryAfterMs' in what
}

export function foreignDecision(decision: unknown): MillraceError {
  const expected = 'a decision of this limiter'
  return new MillraceError('ERR_MILLRACE_FOREIGN_DECISION', 'decision', decision, expected)
}

export function checkRemaining(remaining: unknown): asserts remaining is boolean {
  if (typeof remaining === 'boolean') return
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'remaining', remaining, 'a boolean')
}

export function checkSignal(signal: unknown): asserts signal is AbortSignal | undefined {
  if (signal === undefined || signal instanceof AbortSignal) return
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'signal', signal, 'an AbortSignal')
}

export function checkWaitOptions(options: { cost?: number; signal?: AbortSignal }): {
  cost: number
  signal: AbortSignal | undefined
} {
  checkOptions(options, ['cost', 'signal'])
  const { cost = 1, signal } = options
  checkSignal(signal)
  checkCost(cost)
  return { cost, signal }
}

/** The new limit. */
export function checkUpdate(rule: unknown, ownRule: string, change: { limit: number }): number {
  if (rule !== ownRule) throw new MillraceError('ERR_MILLRACE_INVALID_RULE', 'rule', rule, `'${ownRule}'`)
  const limit: unknown = change?.limit
  checkLimit(limit)
  checkOptions(change, ['limit'], 'change')
  return limit
}

/** A block's milliseconds, `Infinity` for ever. */
export function blockMs(ms: Duration): number {
  return ms === Number.POSITIVE_INFINITY ? ms : parseDuration(ms, 'ms')
}
