import { WindowJudge } from '../../judge/window-judge.js'
import type { StressRule } from './job.js'
import type { Admission } from './log.js'

export interface Judged {
  windows: number
  over: number
  /** By the granules that Redis has charged. */
  fullest: number
  /** By the clock of the processes: units that were certainly admitted within one window. */
  certain: number
  complaints: string[]
}

/** Judges all windows of one key. */
export function judge({ limit, windowMs, granules }: StressRule, admissions: readonly Admission[]): Judged {
  const units = new Map<number, number>()
  for (const { granule, cost } of admissions) units.set(granule, (units.get(granule) ?? 0) + cost)
  // A unit counts as long as any moment of its granule is in the window.
  const windows = new WindowJudge(limit, granules + 1)
  for (const granule of [...units.keys()].toSorted((a, b) => a - b))
    windows.add(0, granule, units.get(granule)!)
  const certain = mostWithin(admissions, windowMs)
  const complaints = [...windows.complaints]
  if (certain > limit) complaints.push(`${certain} of ${limit} within ${windowMs} ms by the processes' clock`)
  const over = windows.over + Number(certain > limit)
  return { windows: windows.windows, over, fullest: windows.fullest, certain, complaints }
}

/** The most units whose request was sent and whose reply came within one window. */
export function mostWithin(admissions: readonly Admission[], windowMs: number): number {
  const bySent = admissions.toSorted((a, b) => b.sentMs - a.sentMs)
  const received = admissions.map(({ receivedMs }) => receivedMs).toSorted((a, b) => a - b)
  /** A Fenwick tree of units by the time of the reply. */
  const tree = new Float64Array(received.length + 1)
  let most = 0
  for (const { sentMs, receivedMs, cost } of bySent) {
    for (let at = countUntil(received, receivedMs); at <= received.length; at += at & -at) tree[at]! += cost
    let sum = 0
    for (let at = countUntil(received, sentMs + windowMs); at > 0; at -= at & -at) sum += tree[at]!
    most = Math.max(most, sum)
  }
  return most
}

/** How many of the ascending values are at most `value`. */
function countUntil(values: readonly number[], value: number): number {
  let low = 0
  let high = values.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (values[middle]! <= value) low = middle + 1
    else high = middle
  }
  return low
}
