import { inCommas, type Progress } from '../../long-runs/progress.js'
import { type Findings, MANNERS, type Manner, Round } from './round.js'

const DEATHS_PER_ROUND = MANNERS.length
/** `minThreads` and `maxThreads` of the pools. */
const POOL_SIZES = [
  [1, 1],
  [2, 2],
  [1, 3],
] as const
/** Calls in flight: more than fit in a ring, and fewer. */
const MAX_IN_FLIGHT = [3_000, 300, 300, 3_000]

/** Runs pools, one after the other, until `deaths` threads have died. */
export async function runDeaths(deaths: number, seed: number, progress: Progress): Promise<Findings> {
  let all: Findings | undefined
  let dead = 0
  for (let round = 0; dead < deaths && (all?.hangs ?? 0) === 0; round++) {
    const count = Math.min(DEATHS_PER_ROUND, deaths - dead)
    const manners = Array.from({ length: count }, (_, i): Manner => MANNERS[(round + i) % MANNERS.length]!)
    const [minThreads, maxThreads] = POOL_SIZES[round % POOL_SIZES.length]!
    const plan = {
      manners,
      minThreads,
      maxThreads,
      isManual: round % 2 === 1,
      rules: 1 + ((round >> 1) % 2),
      maxInFlight: MAX_IN_FLIGHT[round % MAX_IN_FLIGHT.length]!,
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
    allRingsMs: [...a.allRingsMs, ...b.allRingsMs],
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
    `next decision of a pool of one thread after ${timesOf(found.firstMs)}`,
    `replies of every ring to all earlier requests after ${timesOf(found.allRingsMs)}`,
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
  const work = `${inCommas(decided)} decisions on ${inCommas(keys)} keys judged, ${inCommas(lost)} calls lost`
  const again = `next decision within ${Math.max(0, ...firstMs).toFixed(0)} ms`
  return `${inCommas(countOf(found))} deaths: ${work}, ${again}, ${hangs} hangs, ${complaints.length} complaints`
}
