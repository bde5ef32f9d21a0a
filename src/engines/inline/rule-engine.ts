import type { Charge } from '../../algorithms/algorithm.js'
import type { Clock } from '../../core/clock.js'
import type { Reading } from '../../core/reading.js'
import type { RulePart } from '../../core/rules-decision.js'
import type { Arena } from '../../memory/records.js'
import { unitIn } from '../../memory/unit.js'
import type { Changes, Engine } from '../engine.js'
import type { DecisionEstimates } from './decision-estimates.js'
import { InlineEngine } from './inline.js'
import type { NearLimit } from './near-limit.js'
import type { SavedCharge } from './saved-charge.js'
import { UnitEngine } from './unit-engine.js'
import type { Views } from './views.js'

/** The changes of one rule's keys. */
export interface RuleChanges extends Changes {
  /** Gives back the charge of a decision or `units` of it, by the last reading of the clock. */
  takeBack(decision: RulePart, units?: number): number
  /** Gives back `cost` units of the charge on this way, by the last reading of the clock. */
  takeBackFrom(way: number, charge: Charge, cost: number): number
}

/**
 * Decides by one rule, alone or as one of several: `InlineEngine`, or `UnitEngine` for a rule with the option
 * `unit`. `InlineEngine` documents the methods.
 */
export interface RuleEngine extends Engine<RulePart> {
  readonly changes: RuleChanges
  readonly isShadow: boolean
  readonly countsRefused: boolean
  /** The arena by the present record. */
  readonly arena: Arena
  readonly reading: Reading
  readonly limit: number
  readonly estimates: DecisionEstimates
  /** The way of the last decision, or -1. */
  readonly way: number
  /** Which of its admissions, in whole units, are near the limit. */
  readonly near: NearLimit
  touch(lo: number, hint: number): number
  checkSet(lo: number, hi: number, cost: number, hint: number, limit: number | undefined): RulePart
  peekSet(lo: number, hi: number, cost: number, limit?: number): RulePart
  takeBack(admitted: RulePart): RulePart
  usage(lo: number, hi: number, lastMs: number): number
  /** The decision that a charge was saved from. */
  restored(saved: SavedCharge, lo: number, hi: number, cost: number): RulePart
  /** It counts in units. */
  readonly views: Views
}

/** The limits of one call, by the index of the rule. */
export type Limits = readonly (number | undefined)[]

/** Those of a call without any. Compared by identity. */
export const NO_LIMITS: Limits = []

/** Whether the rule of an arena has the option `unit`. */
export const hasUnit = ({ words }: Arena): boolean => unitIn(words) !== undefined

/** The engine of a rule. */
export function ruleEngineOf(
  arena: Arena,
  ruleName: string,
  clock: Clock,
  nearLimit?: number,
  call?: Int32Array,
): RuleEngine {
  const engine = new InlineEngine(arena, ruleName, clock, nearLimit, call)
  const unit = unitIn(arena.words)
  return unit === undefined ? engine : new UnitEngine(engine, unit)
}
