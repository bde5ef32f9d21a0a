import { inCommas, type Progress } from '../../long-runs/progress.js'
import { type Findings, MANNERS, type Manner, Round } from './round.js'

const DEATHS_PER_ROUND = MANNERS.length
/** Threads at least and at most, of one pool after another. */
const POOLS = [
  [1, 1],
  [2, 2],
  [1, 3],
] as const
/** Calls under way: more than a ring has room for, and fewer. */
const MOST_UNDER_WAY = [3_000, 300, 300, 3_000]

/** Pools, one after another, until so many of their threads have died. */
export async function runDeaths(deaths: number, seed: number, progress: Progress): Promise<Findings> {
  let all: Findings | undefined
  let dead = 0
  for (let round = 0; dead < deaths && (all?.hangs ?? 0) === 0; round++) {
    const count = Math.min(DEATHS_PER_ROUND, deaths - dead)
    const manners = Array.from({ length: count }, (_, i): Manner => MANNERS[(round + i) % MANNERS.length]!)
    const [minThreads, maxThreads] = POOLS[round % POOLS.length]!
    const plan = {
      manners,
      minThreads,
      maxThreads,
      isManual: round % 2 === 1,
      mostUnderWay: MOST_UNDER_WAY[round % MOST_UNDER_WAY.length]!,
      seed: seed + 1_000 * round,
    }
    const found = await new Round(plan).run(() => {
      dead++
      progress.at(`${inCommas(dead)} of ${inCommas(deaths)} deaths`)
    })
    all = all === undefined ? found : sum(all, found)
  }
  return all!
}

function sum(a: Findings, b: Findings): Findings {
  const deaths = Object.fromEntries(
    MANNERS.map((manner) => [manner, a.deaths[manner] + b.deaths[manner]]),
  ) as Record<Manner, number>
  return {
    deaths,
    decided: a.decided + b.decided,
    lost: a.lost + b.lost,
    keys: a.keys + b.keys,
    firstMs: [...a.firstMs, ...b.firstMs],
    wholeMs: [...a.wholeMs, ...b.wholeMs],
    hangs: a.hangs + b.hangs,
    complaints: [...a.complaints, ...b.complaints],
  }
}

export function countOf({ deaths }: Findings): number {
  return Object.values(deaths).reduce((sum, count) => sum + count)
}

export function linesOf(found: Findings): string[] {
  return [
    MANNERS.map((manner) => `${inCommas(found.deaths[manner])} ${manner}`).join(', '),
    `a pool of one thread decided again after ${timesOf(found.firstMs)}`,
    `every ring had answered, behind all that was asked before, after ${timesOf(found.wholeMs)}`,
    ...found.complaints.slice(0, 20),
  ]
}

function timesOf(times: readonly number[]): string {
  const sorted = [...times].sort((a, b) => a - b)
  const median = sorted[sorted.length >> 1] ?? 0
  return `${median.toFixed(0)} ms (median), ${(sorted.at(-1) ?? 0).toFixed(0)} ms at most`
}

export function summaryOf(found: Findings): string {
  const { decided, keys, lost, firstMs, hangs, complaints } = found
  const what = `${inCommas(decided)} decisions on ${inCommas(keys)} keys judged, ${inCommas(lost)} calls lost`
  const again = `deciding again within ${Math.max(0, ...firstMs).toFixed(0)} ms`
  return `${inCommas(countOf(found))} deaths: ${what}, ${again}, ${hangs} hangs, ${complaints.length} complaints`
}
