import type { Goal, Round } from './benchmark.js'
import { type Summary, summarize } from './statistics.js'

/** What the rounds say of one goal. */
export interface Verdict {
  readonly target?: string
  readonly what: string
  readonly unit: Goal['unit']
  /** Of the values of all rounds, each taken within its round. */
  readonly value: Summary
  readonly atMost?: number
  readonly atLeast?: number
  readonly stretch?: number
  /** Whether the median keeps to the bound; absent where there is none. */
  readonly met?: boolean
  /** By what part of the bound the median is on the wrong side of it: 0.1 is a tenth. 0 where it is met. */
  readonly missedBy?: number
}

export function judge(goal: Goal, rounds: readonly Round[]): Verdict {
  const { value: valueIn, ...said } = goal
  const value = summarize(rounds.map((round) => valueIn(round)))
  const missedBy = missed(value.median, goal)
  return { ...said, value, ...(missedBy === undefined ? {} : { met: missedBy === 0, missedBy }) }
}

function missed(median: number, { atMost, atLeast }: Goal): number | undefined {
  if (atMost !== undefined) return Math.max(0, median / atMost - 1)
  if (atLeast !== undefined) return Math.max(0, 1 - median / atLeast)
  return undefined
}
