import { attachLimiter, type Decision, type SharedLimiter } from 'millrace'
import { attachPool, type InlineDecision, monotonicClock } from 'millrace/internal'
import type { Engine } from './messages.js'

/** Is told what was decided, and for an admission when it took effect, in milliseconds; or that nothing was decided. */
export type Answer = (decision: Decision | undefined, effectMs: number) => void

/** One thread's part of the limit. */
export interface Decider {
  readonly limit: number
  /** Inline, `answer` is called at once. */
  decide(client: string, answer: Answer): void
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
    decide(client, answer) {
      const decision = limiter.check(client)
      answer(decision, decision.allowed ? (decision as InlineDecision).effectMs(readingMs) : 0)
    },
  }
}

function poolDecider(shared: SharedLimiter): Decider {
  const limiter = attachPool(shared)
  return {
    limit: limiter.rule.limit,
    decide(client, answer) {
      const askedMs = monotonicClock.now()
      limiter.check(client).then(
        (decision) => {
          answer(decision, decision.allowed ? limiter.effectMs(decision, askedMs, monotonicClock.now()) : 0)
        },
        () => answer(undefined, 0),
      )
    },
  }
}
