import type { Decision } from './decision.js'
import { onOneLine } from './inert.js'

/**
 * The error of `checkOrThrow` for a refused request. It is no {@link MillraceError}: those are mistakes and
 * outages, and being over the limit is neither. If `decision.source` is `'outage'`, the store did not answer,
 * and the option `onOutage` refused: the client may be within its limit. Answer 503 then, not 429.
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
  /** The refusal: its rule, its limit, who decided, and when to try again. */
  readonly decision: Decision

  /** @internal */
  constructor(decision: Decision) {
    super(onOneLine(`${reasonOf(decision)} retry after ${decision.retryAfterSeconds} s`))
    this.decision = decision
  }
}

function reasonOf(decision: Decision & { member?: string }): string {
  const { rule, limit, source, member } = decision
  if (source === 'outage') return 'not decided: the store does not answer;'
  if (source === 'config') return 'not decided: the policy of the key is not known yet;'
  const by = member === undefined ? '' : `member ${JSON.stringify(member)}, `
  return `refused by ${by}rule ${JSON.stringify(rule)} of ${limit}:`
}

/** Returns the decision. @throws MillraceLimited if it is a refusal */
export function admitted<D extends Decision>(decision: D): D {
  if (!decision.allowed) throw new MillraceLimited(decision)
  return decision
}
