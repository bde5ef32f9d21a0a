import type { Goal, Noise, Round } from './benchmark.js'
import { type Summary, summarize } from './statistics.js'

/** The result of one goal over all rounds. */
export interface Verdict {
  readonly target?: string
  readonly label: string
  /** Present if the goal was judged on the build without the addon, which did better. */
  readonly build?: 'without the addon'
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
  /** Present if the goal was not judged: its contenders differ less than one of them from itself. */
  readonly isTooNoisy?: true
}

export function judge(goal: Goal, rounds: readonly Round[]): Verdict {
  const { value: valueIn, withoutAddon, noise, ...fields } = goal
  const usual = summarize(rounds.map((round) => valueIn(round)))
  const other = withoutAddon && summarize(rounds.map((round) => withoutAddon(round)))
  const isOther = other !== undefined && isBetter(other.median, usual.median, goal)
  const value = isOther ? other : usual
  const isTooNoisy = noise !== undefined && hidesDifference(noise, rounds)
  const missedBy = isTooNoisy ? undefined : missed(value.median, goal)
  return {
    ...fields,
    ...(isOther && { build: 'without the addon' }),
    value,
    ...(missedBy !== undefined && { met: missedBy === 0, missedBy }),
    ...(isTooNoisy && { isTooNoisy }),
  }
}

function hidesDifference({ difference, itself }: Noise, rounds: readonly Round[]): boolean {
  const { min, max } = summarize(rounds.map(itself))
  return max - min >= Math.abs(summarize(rounds.map(difference)).median)
}

/**
 * Whether rounds that are not measured yet, up to `count`, can't change any verdict: in more than half of
 * `count` rounds every goal is on the same side of its bound, and so the median will be. False without a
 * bound, and where noise is measured.
 */
export function isDecided(goals: readonly Goal[], rounds: readonly Round[], count: number): boolean {
  const judged = goals.filter((goal) => missed(0, goal) !== undefined)
  if (judged.length === 0 || 2 * rounds.length <= count) return false
  if (judged.some(({ noise }) => noise !== undefined)) return false
  return judged.every((goal) => {
    const builds = goal.withoutAddon === undefined ? [goal.value] : [goal.value, goal.withoutAddon]
    const met = builds.map((valueIn) => rounds.map((round) => missed(valueIn(round), goal) === 0))
    return met.some((each) => each.every(Boolean)) || !met.flat().some(Boolean)
  })
}

/** Whether a median is further on the right side of the goal's bound than another. */
function isBetter(median: number, other: number, { atMost }: Goal): boolean {
  return atMost === undefined ? median > other : median < other
}

function missed(median: number, { atMost, atLeast }: Goal): number | undefined {
  if (atMost !== undefined) return Math.max(0, median / atMost - 1)
  if (atLeast !== undefined) return Math.max(0, 1 - median / atLeast)
  return undefined
}
