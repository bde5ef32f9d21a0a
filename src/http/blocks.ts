import type { AsyncLimiter } from '../api/async-limiter.js'
import type { Limiter } from '../api/limiter.js'
import type { Decision } from '../core/decision.js'
import { isUndecided } from '../core/decision-source.js'
import type { Key } from '../memory/keys.js'
import { isPromise } from './caller-promise.js'

/**
 * Whether a key is blocked. Cost 0 is refused only by a block. An outage says nothing about the key: then the
 * decision of the outage is returned.
 */
export function blockOf(limiter: Limiter | AsyncLimiter, key: Key): BlockState | Promise<BlockState> {
  const peeked = limiter.peek(key, 0)
  return isPromise(peeked) ? Promise.resolve(peeked).then(stateOf) : stateOf(peeked)
}

export type BlockState = boolean | Decision

const stateOf = (decision: Decision): BlockState =>
  isUndecided(decision.source) ? decision : !decision.allowed
