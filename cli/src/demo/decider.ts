import { attachLimiter, type Decision, type SharedLimiter } from 'millrace'
import { attachPool, type InlineDecision, monotonicClock } from 'millrace/internal'
import type { Engine } from './messages.js'

/**
 * Receives a decision and, for an admission, the time in milliseconds at which it took effect. The decision
 * is undefined if the limiter failed.
 */
export type OnDecision = (decision: Decision | undefined, effectMs: number) => void

/** The limiter of one server thread. */
export interface Decider {
  readonly limit: number
  /** Calls `onDecision` with the decision, synchronously with the inline engine. */
  decide(client: string, onDecision: OnDecision): void
}

export const decider = (engine: Engine, shared: SharedLimiter): Decider =>
  engine === 'pool' ? poolDecider(shared) : inlineDecider(shared)

function inlineDecider(shared: SharedLimiter): Decider {
  let readingMs = 0
  const limiter = attachLimiter(shared, {
    clock: {
      now() {
        readingMs = monotonicClock.now()
        return readingMs
      },
    },
  })
  return {
    limit: limiter.rule.limit,
    decide(client, onDecision) {
      const decision = limiter.check(client)
      onDecision(decision, decision.allowed ? (decision as InlineDecision).effectMs(readingMs) : 0)
    },
  }
}

function poolDecider(shared: SharedLimiter): Decider {
  const limiter = attachPool(shared)
  return {
    limit: limiter.rule.limit,
    decide(client, onDecision) {
      const requestedMs = monotonicClock.now()
      limiter.check(client).then(
        (decision) => {
          onDecision(
            decision,
            decision.allowed ? limiter.effectMs(decision, requestedMs, monotonicClock.now()) : 0,
          )
        },
        () => onDecision(undefined, 0),
      )
    },
  }
}
