import Table from 'cli-table3'
import type { Pauses } from './pauses.js'
import { isAbove, type Slope, slopeOf } from './slope.js'
import type { LimiterResult, Sample, SoakResult } from './soak.js'

const MOST_RSS_MB_AN_HOUR = 20
const MOST_HEAP_MB_AN_HOUR = 5
/** Shorter runs print slopes without judging them, because garbage collections are too rare in them. */
const JUDGED_FROM_MINUTES = 10
const WARM_UP_SHARE = 0.1
const WARM_UP_MS = 60_000
/** The slope is that of the minima of this many sections: memory after collections, not between them. */
const STRETCHES = 40
const MB = 2 ** 20

/** Slopes of memory after the warm-up, in MB per hour; undefined with too few samples. */
export interface Growth {
  readonly rss: Slope | undefined
  /** One per thread. */
  readonly heaps: readonly (Slope | undefined)[]
}

export function growthOf({ samples }: SoakResult): Growth {
  const threads = samples[0]?.heapBytes.length ?? 0
  return {
    rss: leastSlope(samples, ({ rssBytes }) => rssBytes),
    heaps: Array.from({ length: threads }, (_, i) => leastSlope(samples, ({ heapBytes }) => heapBytes[i]!)),
  }
}

function leastSlope(samples: readonly Sample[], of: (sample: Sample) => number): Slope | undefined {
  const lastMs = samples.at(-1)?.atMs ?? 0
  const fromMs = Math.min(lastMs / 2, Math.max(WARM_UP_MS, lastMs * WARM_UP_SHARE))
  const warm = samples.filter(({ atMs }) => atMs >= fromMs)
  const size = Math.max(1, Math.floor(warm.length / STRETCHES))
  const points = []
  for (let i = 0; i + size <= warm.length; i += size) {
    const stretch = warm.slice(i, i + size)
    const value = Math.min(...stretch.map(of)) / MB
    points.push({ atMs: stretch[size >> 1]!.atMs, value })
  }
  return points.length >= 3 ? slopeOf(points) : undefined
}

/** Descriptions of the slopes that are significantly too steep. */
export function leaksOf({ minutes }: SoakResult, { rss, heaps }: Growth): string[] {
  if (minutes < JUDGED_FROM_MINUTES) return []
  const leak = (what: string, slope: Slope | undefined, most: number) =>
    slope !== undefined && isAbove(slope, most) ? [`${what} grows by ${slopeText(slope)}, bound ${most}`] : []
  return [
    ...leak('RSS', rss, MOST_RSS_MB_AN_HOUR),
    ...heaps.flatMap((slope, i) => leak(`the heap of ${THREADS[i]}`, slope, MOST_HEAP_MB_AN_HOUR)),
  ]
}

const THREADS = ['the main thread', 'the worker']

/** The table, one line per problem, and a summary line. */
export function report(result: SoakResult): { lines: string[]; held: boolean } {
  const growth = growthOf(result)
  const wrong = [...result.wrong, ...leaksOf(result, growth)]
  const { minutes, seed, rests, pauses } = result
  const decisions = decisionsOf(result)
  const [rss, ...heaps] = [growth.rss, ...growth.heaps].map((slope) => slopeText(slope))
  const summary = [
    `${wrong.length === 0 ? 'Held' : `BROKEN (${wrong.length})`}: ${decimal(minutes)} minutes`,
    `${grouped(decisions)} decisions by 2 threads (${grouped(decisions / (minutes * 60))} per second)`,
    `${wrong.length === 0 ? 'all counts match' : 'checked'} at ${rests} rests`,
    `RSS ${rss}, heap ${heaps.join(' and ')}`,
    `longest event-loop delay ${decimal(pauses.longestDelayMs)} ms`,
    `seed ${seed}`,
  ].join('; ')
  const lines = [
    tableOf(result.limiters),
    pausesLine(pauses),
    ...wrong.slice(0, MOST_WRONG_LINES).map((text) => `wrong: ${text}`),
    summary,
  ]
  return { lines, held: wrong.length === 0 }
}

const MOST_WRONG_LINES = 20

function pausesLine(pauses: Pauses): string {
  const { longestDelayMs, longestSliceMs, longestRunMs, longestCollectionMs, shareWaited } = pauses
  const [median, most] = [50, 99.9].map((percent) => decimal(pauses.turnMs(percent)))
  const waited =
    shareWaited === undefined
      ? []
      : [
          `longest turn in processor time ${decimal(longestRunMs)} ms`,
          `waiting for a processor ${decimal(100 * shareWaited)} % of the time`,
        ]
  return [
    `Main thread: a turn of the event loop (a slice of decisions) ${median} ms, 99.9 % within ${most} ms`,
    `longest delay ${decimal(longestDelayMs)} ms, slice ${decimal(longestSliceMs)} ms`,
    `collection ${decimal(longestCollectionMs)} ms`,
    ...waited,
  ].join('; ')
}

/** The progress of a run, in one line. */
export function progressLine(result: SoakResult): string {
  const last = result.samples.at(-1)!
  const rssMb = (last.rssBytes / MB).toFixed(0)
  const heaps = last.heapBytes.map((bytes) => (bytes / MB).toFixed(1)).join(' and ')
  const decisions = decisionsOf(result)
  return [
    `minute ${(last.atMs / 60_000).toFixed(1)} of ${decimal(result.minutes)}`,
    `${grouped(decisions)} decisions (${grouped((decisions / last.atMs) * 1000)} per second)`,
    `RSS ${rssMb} MB, heap ${heaps} MB`,
    `longest delay ${decimal(result.pauses.longestDelayMs)} ms`,
    `${result.wrong.length} wrong`,
  ].join('; ')
}

function decisionsOf({ limiters }: SoakResult): number {
  return limiters.reduce((sum, { counts }) => sum + total(counts, 'admitted') + total(counts, 'refused'), 0)
}

function tableOf(limiters: readonly LimiterResult[]): string {
  const table = new Table({
    head: ['', ...limiters.map(({ traffic }) => traffic.name)],
    colAligns: ['left', ...limiters.map(() => 'right' as const)],
    style: { head: [], border: [], compact: true },
  })
  const row = (title: string, value: (limiter: LimiterResult) => string) =>
    table.push([title, ...limiters.map(value)])
  row('admitted', ({ counts }) => grouped(total(counts, 'admitted')))
  row('refused', ({ counts }) => grouped(total(counts, 'refused')))
  row('keys inserted', ({ counts }) => grouped(total(counts, 'made')))
  row('of these, uncertain', ({ counts }) => grouped(total(counts, 'unclear')))
  row('evicted, all expired', ({ evicted }) => grouped(evicted))
  row('keys at the end', ({ keys }) => grouped(keys))
  row('most in any window, hot keys', ({ hot, traffic }) => `${hot.most} of ${traffic.limit}`)
  row('passing keys judged', ({ passing }) => grouped(passing.judged))
  row('most in any window, passing', ({ passing, traffic }) => `${passing.most} of ${traffic.limit}`)
  row('charges too late for the log', ({ unlogged }) => grouped(unlogged))
  return table.toString()
}

function total(counts: LimiterResult['counts'], of: keyof LimiterResult['counts'][number]): number {
  return counts.reduce((sum, each) => sum + each[of], 0)
}

function slopeText(slope: Slope | undefined): string {
  if (slope === undefined) return 'slope unknown'
  const { perHour, standardError } = slope
  return `${perHour < 0 ? '' : '+'}${perHour.toFixed(1)} ± ${standardError.toFixed(1)} MB/h`
}

const grouped = (value: number): string => Math.round(value).toLocaleString('en-US')
const decimal = (value: number): string => String(Math.round(value * 100) / 100)
