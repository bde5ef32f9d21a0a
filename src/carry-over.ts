import type { RuleEngine } from './engines/rule-engine.js'
import type { AnyInlineLimiter } from './limiter-on.js'
import { presentShape } from './limiter-rules.js'
import { unitIn } from './memory/unit.js'

/**
 * Brings what a key has used by the rules of one limiter into those of another, which count it from now on: its policy
 * has another window. A rule then counts at least what the old rules know of the last window of its length, as used
 * now. So a change of the window forgets nothing, and errs to refusal for at most one window. Doing it twice changes
 * nothing (unless a refund came in between, which it then undoes), and threads may do it each for itself.
 */
export function carryOver(from: AnyInlineLimiter, to: AnyInlineLimiter, lo: number, hi: number): void {
  for (const engine of to.ruleEngines) {
    const { windowMs } = presentShape(engine)
    const source = sourceFor(engine, windowMs, from.ruleEngines)
    if (source === undefined) continue
    const used = source.usage(lo, hi, Math.min(windowMs, presentShape(source).windowMs))
    if (used === 0) continue
    const missing = used - engine.usage(lo, hi, windowMs)
    if (missing > 0) engine.changes.penalize(lo, hi, missing)
  }
  const left = blockLeft(from, lo, hi)
  if (left > blockLeft(to, lo, hi)) to.engine.changes.block(lo, hi, left)
}

/** The rule that knows most exactly what was used in a window of this length: the shortest one that covers it. */
function sourceFor(
  { arena }: RuleEngine,
  windowMs: number,
  engines: readonly RuleEngine[],
): RuleEngine | undefined {
  const unit = unitIn(arena.words)
  let best: RuleEngine | undefined
  for (const engine of engines) {
    if (unitIn(engine.arena.words) !== unit) continue // bytes are no requests
    if (best === undefined) {
      best = engine
      continue
    }
    const [ms, bestMs] = [presentShape(engine).windowMs, presentShape(best).windowMs]
    if (ms >= windowMs ? bestMs < windowMs || ms < bestMs : bestMs < windowMs && ms > bestMs) best = engine
  }
  return best
}

/** Milliseconds until the block of a key ends; 0 without one. */
function blockLeft({ engine }: AnyInlineLimiter, lo: number, hi: number): number {
  return engine.peek(lo, hi, 0).retryAfterMs
}
