/**
 * The contract of a benchmark. `main.ts` runs every contender of a case in a process of its own, one after the other,
 * round after round, and reads the goals off each round: a ratio is only ever taken between figures of one round,
 * because the machine's speed moves by more than what is measured from one minute to the next.
 */

/** What one contender measured in one process, by the names that {@link Benchmark.units} explains. */
export type Figures = Readonly<Record<string, number>>

/** The figures of one round by the name of the contender. */
export type Round = Readonly<Record<string, Figures>>

/** How much to do. */
export interface Effort {
  readonly quick: boolean
  /** Decisions in a timed loop over keys that stay in the caches. */
  readonly operations: number
  /** Decisions in a timed loop over a million keys: each is slow, and inserting the keys takes longer still. */
  readonly coldOperations: number
}

/** Enough for figures to quote. */
export const FULL_EFFORT: Effort = { quick: false, operations: 2_000_000, coldOperations: 600_000 }
/** Enough to see that everything runs and about where it stands. */
export const QUICK_EFFORT: Effort = { quick: true, operations: 200_000, coldOperations: 200_000 }

export interface Contender {
  readonly name: string
  /** Runs in a fresh process, once. Throws where it did not do what it was timed for. */
  measure(effort: Effort): Figures | Promise<Figures>
}

/** Something to read off each round; with a bound, something to hold it to. */
export interface Goal {
  /** The target of PERFORMANCE.md that this is a part of, such as `P1`. */
  readonly target?: string
  readonly what: string
  readonly unit: 'x' | 'ns' | 'us' | 'million/s' | 'MB' | 'bytes'
  value(round: Round): number
  readonly atMost?: number
  readonly atLeast?: number
  /** What would be better still, on the same side as the bound. */
  readonly stretch?: number
}

export interface Benchmark {
  readonly title: string
  /** The name of each figure that the contenders answer with, and its unit. */
  readonly units: Readonly<Record<string, string>>
  readonly contenders: readonly Contender[]
  readonly goals: readonly Goal[]
  /** How often each contender is measured, where that is not {@link ROUNDS}; say why. */
  readonly rounds?: { readonly full: number; readonly quick: number }
  /** Why it cannot be measured on this machine; absent, or answering undefined, where it can. */
  readonly unavailable?: () => string | undefined
}

export const ROUNDS = { full: 5, quick: 3 }

/** The figure of one contender in a round. @throws Error where the case names a contender or figure it does not have */
export function figureOf(round: Round, contender: string, figure = 'ns'): number {
  const value = round[contender]?.[figure]
  if (value === undefined) throw new Error(`no figure '${figure}' of '${contender}' in this round`)
  return value
}

/** A figure of `contender`, by default its time, as a multiple of that of `base`. */
export function timesOf(contender: string, base: string, figure = 'ns'): (round: Round) => number {
  return (round) => figureOf(round, contender, figure) / figureOf(round, base, figure)
}

/** As {@link timesOf}, with the time of what both have to do first taken out of both. */
export function timesOfBeyond(contender: string, base: string, shared: string): (round: Round) => number {
  return (round) => {
    const sharedNs = figureOf(round, shared)
    return (figureOf(round, contender) - sharedNs) / (figureOf(round, base) - sharedNs)
  }
}
