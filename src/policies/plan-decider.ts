import type { Engine, OwnDecision } from '../engines/engine.js'
import type { AnyInlineLimiter } from '../limiters/limiter-on.js'
import type { PlanMember } from './policy-plans.js'

/** What decides by the plans of one member. */
export interface Decider {
  readonly engine: Engine<OwnDecision>
  /** By which a plan's value is the limit; 0: there are several rules, and the value is the index of their limits. */
  readonly unit: number
}

export function deciderFor({ limiter, shape }: PlanMember<AnyInlineLimiter>): Decider {
  const { length, 0: first } = shape.rules
  return { engine: limiter.engine, unit: length === 1 ? (first.unit ?? 1) : 0 }
}
