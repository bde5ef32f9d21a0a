import { type Limiter, MillraceError } from 'millrace'
import { monotonicClock } from '#millrace/core/clock.js'
import type { Board } from './board.js'
import type { Change } from './job.js'
import { nameOf, type Planned } from './plan.js'

/** Turns that every other thread makes between two changes: at least one of them whole. */
const LEAST_TURNS = 2
const MOST_TURNS = 8

/**
 * Changes the rules of a limiter, as soon as every other thread has made a few more turns. So every thread has
 * decided by each window, and goes on while the next one comes.
 */
export class Changer {
  readonly changes: Change[] = []
  readonly #limiter: Limiter
  readonly #board: Board
  readonly #next: () => number
  readonly #due: (Planned & { readonly rule: number })[]
  #goals: number[] = []

  /** The thread `own` of `changers` makes every `changers`-th change of the plans. */
  constructor(
    limiter: Limiter,
    board: Board,
    plans: readonly Planned[][],
    next: () => number,
    [own, changers]: readonly [number, number],
  ) {
    this.#limiter = limiter
    this.#board = board
    this.#next = next
    this.#due = plans
      .flatMap((plan, rule) => plan.slice(1).map((planned, i) => ({ ...planned, rule, i })))
      .sort((a, b) => a.i - b.i)
      .filter(({ i }) => i % changers === own)
    this.#setGoals()
  }

  /** Makes the next change if it is time. Returns false if there are no more. */
  advance(): boolean {
    const turns = this.#board.turns()
    if (this.#goals.some((goal, thread) => turns[thread]! < goal)) return true
    const change = this.#due.shift()
    if (change === undefined) return false
    const { rule, windowMs, buckets, limit } = change
    try {
      this.#limiter.update(nameOf(rule), { window: windowMs, granularity: windowMs / buckets, limit })
    } catch (error) {
      // The other changer has used up the records that this one lacks now.
      if (error instanceof MillraceError && error.option === 'window') return false
      throw error
    }
    this.changes.push({ rule, windowMs, endMs: monotonicClock.now() })
    this.#board.countChange()
    this.#setGoals()
    return true
  }

  /** The goal of this thread itself has been reached when it looks next. */
  #setGoals(): void {
    const more = LEAST_TURNS + Math.floor(this.#next() * (MOST_TURNS - LEAST_TURNS))
    this.#goals = this.#board.turns().map((turns) => turns + more)
  }
}
