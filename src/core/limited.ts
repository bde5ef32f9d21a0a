import type { Decision } from './decision.js'

/**
 * The error of `checkOrThrow` for a refused request. It is no {@link MillraceError}: those are mistakes and
 * outages, and being over the limit is neither.
 *
 * @example
 * ```ts
 * import { MillraceLimited } from 'millrace'
 *
 * try {
 *   await limiter.checkOrThrow('user:42')
 * } catch (error) {
 *   if (error instanceof MillraceLimited) console.log(error.decision.retryAfterSeconds)
 * }
 * ```
 */
export class MillraceLimited extends Error {
  /** `'MillraceLimited'`. */
  override readonly name = 'MillraceLimited'
  /** `'ERR_MILLRACE_LIMITED'`. */
  readonly code = 'ERR_MILLRACE_LIMITED'
  /** The refusal: its rule, its limit, and when to try again. */
  readonly decision: Decision

  /** @internal */
  constructor(decision: Decision) {
    const { rule, limit, retryAfterSeconds, member } = decision as Decision & { member?: string }
    const by = member === undefined ? '' : `member ${JSON.stringify(member)}, `
    super(`refused by ${by}rule ${JSON.stringify(rule)} of ${limit}: retry after ${retryAfterSeconds} s`)
    this.decision = decision
  }
}

/** Returns the decision. @throws MillraceLimited if it is a refusal */
export function admitted<D extends Decision>(decision: D): D {
  if (!decision.allowed) throw new MillraceLimited(decision)
  return decision
}
