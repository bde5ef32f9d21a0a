import type { Decision } from '../core/decision.js'
import type { Answer } from './problem.js'

/** The connection has closed while the request was delayed: nobody waits for an answer. */
export const GONE = Symbol('the connection has closed')

/** The status of such a request, for logs. nginx has made it known. */
export const GONE_STATUS = 499

/** The answer to a request that does not pass. `decision` is that of a refusal by the limit or a ban only. */
export interface Refusal extends Answer {
  readonly decision?: Decision
}

/** What to do with a request: undefined to pass it on, an answer to send, or GONE. */
export type Step = Refusal | typeof GONE | undefined
