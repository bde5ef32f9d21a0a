/**
 * The contract of a benchmark. `main.ts` runs the contenders of a case one after the other, each in its own
 * process, and repeats that for several rounds. It computes each goal within a round: the machine's speed
 * changes more from one minute to the next than the contenders differ, so figures of different rounds do not
 * compare.
 */

/** The figures that one contender measured in one process; {@link Benchmark.units} explains their names. */
export type Figures = Readonly<Record<string, number>>

/** The figures of one round, by contender. */
export type Round = Readonly<Record<string, Figures>>

/** The amount of work of a run. */
export interface Effort {
  readonly quick: boolean
  /** Decisions in a timed loop over keys that fit in the processor's caches. */
  readonly operations: number
  /**
   * Decisions in a timed loop over a million keys. Fewer, because each is slow and inserting the keys is
   * slower.
   */
  readonly coldOperations: number
  /** The policies of a configuration store, if the command line says how many. */
  readonly policies?: number
}

/** For figures to quote. */
export const FULL_EFFORT: Effort = { quick: false, operations: 400_000, coldOperations: 300_000 }
/** For a trial run: everything runs, and the figures are rough. */
export const QUICK_EFFORT: Effort = { quick: true, operations: 200_000, coldOperations: 200_000 }

export interface Contender {
  readonly name: string
  /** Runs once, in a fresh process. Throws if the contender did not do the work that was timed. */
  measure(effort: Effort): Figures | Promise<Figures>
}

/** A figure computed from each round, such as a ratio of two contenders, and its bound if it has one. */
export interface Goal {
  /** The speed target that this goal belongs to, such as `P1`. */
  readonly target?: string
  readonly label: string
  readonly unit: 'x' | 'ns' | 'us' | 'ms' | 'million/s' | 'MB' | 'bytes'
  value(round: Round): number
  /** {@link value} without the addon. The goal is then judged on the build whose median is better. */
  withoutAddon?(round: Round): number
  readonly atMost?: number
  readonly atLeast?: number
  /** A more ambitious bound on the same side. */
  readonly stretch?: number
  /** What the goal is judged by: nothing, where the machine was too noisy. All rounds are measured then. */
  readonly noise?: Noise
}

/** A goal is judged only if what it is about differs by more than the range of what should be 0 in each round. */
export interface Noise {
  /** How much the contenders of the goal differ in a round, or their ratio from its bound. */
  difference(round: Round): number
  /** How much a contender differs from itself. */
  itself(round: Round): number
}

export interface Benchmark {
  readonly title: string
  /** The figures that each contender returns: name and meaning, with the unit. */
  readonly units: Readonly<Record<string, string>>
  readonly contenders: readonly Contender[]
  readonly goals: readonly Goal[]
  /** The number of rounds, if it differs from {@link roundsOf}. A case that sets it gives the reason. */
  readonly rounds?: { readonly full: number; readonly quick: number }
  /** Returns why this machine cannot run the case, or undefined if it can. */
  readonly unavailable?: () => string | undefined
}

/** The most rounds of a case that has a goal with a bound: see `isDecided` of `verdict.ts`. */
export const ROUNDS = { full: 5, quick: 3 }
/** The rounds of a case without a bound: nothing is judged by its figures. */
export const ROUNDS_WITHOUT_BOUND = { full: 3, quick: 3 }

/** The most rounds that the case is measured for. */
export function roundsOf({ rounds, goals }: Benchmark, { quick }: Pick<Effort, 'quick'>): number {
  const isJudged = goals.some(({ atMost, atLeast }) => atMost !== undefined || atLeast !== undefined)
  const usual = isJudged ? ROUNDS : ROUNDS_WITHOUT_BOUND
  return (rounds ?? usual)[quick ? 'quick' : 'full']
}

/** The figure of one contender in a round. @throws Error if the round has no such contender or figure */
export function figureOf(round: Round, contender: string, figure = 'ns'): number {
  const value = round[contender]?.[figure]
  if (value === undefined) throw new Error(`no figure '${figure}' of '${contender}' in this round`)
  return value
}

/** A figure of `contender` (by default its time) divided by the same figure of `base`. */
export function ratioOf(contender: string, base: string, figure = 'ns'): (round: Round) => number {
  return (round) => figureOf(round, contender, figure) / figureOf(round, base, figure)
}

/** Like {@link ratioOf}, after subtracting the time of `shared`, work that both contenders include. */
export function ratioAbove(contender: string, base: string, shared: string): (round: Round) => number {
  return (round) => {
    const sharedNs = figureOf(round, shared)
    return (figureOf(round, contender) - sharedNs) / (figureOf(round, base) - sharedNs)
  }
}
