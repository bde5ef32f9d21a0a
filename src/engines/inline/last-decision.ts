import type { Figures } from '../../core/decision.js'
import { type Decided, isRefusal, type Outcome } from '../../core/inline-decision.js'
import type { DecidingEngine } from './deciding-engine.js'

/** What the figures of an engine's last decision depend on. Its key has a way. */
export function lastDecided(
  engine: DecidingEngine,
  lo: number,
  hi: number,
  cost: number,
  limit: number,
  outcome: Outcome,
): Decided {
  const { chargedTick: tick, lastAdm: adm, lastUntil } = engine.last
  const { era, way } = engine
  const until = isRefusal(outcome) ? lastUntil : undefined
  return { era, lo, hi, cost, limit, at: engine.reading.nowMs, outcome, way, tick, adm, until }
}

/** The figures of an engine's last decision. */
export function lastFigures(
  engine: DecidingEngine,
  lo: number,
  hi: number,
  cost: number,
  limit: number,
  outcome: Outcome,
): Figures {
  const { estimates } = engine
  if (engine.way < 0) return estimates.ofNewKey(lo, hi, cost, limit, outcome)
  return estimates.figuresOf(lastDecided(engine, lo, hi, cost, limit, outcome))
}
