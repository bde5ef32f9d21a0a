import type { Goal, Round } from './benchmark.js'
import { type Summary, summarize } from './statistics.js'

/** The result of one goal over all rounds. */
export interface Verdict {
  readonly target?: string
  readonly label: string
  readonly unit: Goal['unit']
  /** The summary of the goal's values, each computed within its round. */
  readonly value: Summary
  readonly atMost?: number
  readonly atLeast?: number
  readonly stretch?: number
  /** Whether the median is within the bound; absent without a bound. */
  readonly met?: boolean
  /**
   * The distance of the median from a missed bound, as a fraction of the bound (0.1 is a tenth); 0 if it is
   * met.
   */
  readonly missedBy?: number
}

export function judge(goal: Goal, rounds: readonly Round[]): Verdict {
  const { value: valueIn, ...fields } = goal
  const value = summarize(rounds.map((round) => valueIn(round)))
  const missedBy = missed(value.median, goal)
  return { ...fields, value, ...(missedBy === undefined ? {} : { met: missedBy === 0, missedBy }) }
}

function missed(median: number, { atMost, atLeast }: Goal): number | undefined {
  if (atMost !== undefined) return Math.max(0, median / atMost - 1)
  if (atLeast !== undefined) return Math.max(0, 1 - median / atLeast)
  return undefined
}
