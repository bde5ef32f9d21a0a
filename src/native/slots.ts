import type { Arena } from '../memory/arena.js'
import { type Addon, addonFor } from './addon.js'
import { isTaken, PLAN, planFor } from './plan.js'

/**
 * Fewer are answered in TypeScript, unless MILLRACE_NATIVE is 1: a call costs as much as two or three answers.
 */
const LEAST_SLOTS = 4

/** Answers decisions that are asked in a ring of slots (`memory/request-ring.ts`) by the addon: those that are admitted. */
export class NativeSlots {
  /** The fewest that are worth a call. */
  readonly least: number
  readonly #addon: Addon
  readonly #words: Int32Array
  readonly #ring: Int32Array
  readonly #plan: Float64Array

  /** Undefined where there is no addon; and by the smooth edge, which it does not know. */
  static for(arena: Arena, ring: Int32Array): NativeSlots | undefined {
    const addon = addonFor()
    if (addon === undefined || !isTaken(arena) || arena.edge === 'smooth') return undefined
    return new NativeSlots(addon, arena, ring)
  }

  constructor(addon: Addon, arena: Arena, ring: Int32Array) {
    this.#addon = addon
    this.#words = arena.words
    this.#ring = ring
    this.#plan = planFor(arena)
    this.least = process.env.MILLRACE_NATIVE === '1' ? 1 : LEAST_SLOTS
  }

  /** From one cursor up to before another. Returns the first that it left to us; all before it were admitted and charged. */
  answer(from: number, to: number, nowMs: number): number {
    const plan = this.#plan
    plan[PLAN.FROM] = from
    plan[PLAN.TO] = to
    plan[PLAN.NOW_MS] = nowMs
    return this.#addon.answerSlots(this.#words, this.#ring, plan)
  }
}
