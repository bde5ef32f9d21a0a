import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { RedisLimiter } from 'millrace/redis'

/** The time from one sample of the event loop's delay to the next, which is part of each. */
const RESOLUTION_MS = 1

/** What calls at a fixed rate have seen. */
export interface Calls {
  /** In ascending order. */
  readonly latenciesMs: readonly number[]
  /** The longest time for which the event loop ran nothing else. */
  readonly loopDelayMs: number
}

/** Makes `ratePerSecond` calls of `check`, and waits for their decisions. @throws Error for one by Redis */
export async function callFor(
  limiter: RedisLimiter,
  durationMs: number,
  ratePerSecond: number,
): Promise<Calls> {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  const latenciesMs: number[] = []
  const pending: Promise<void>[] = []
  const call = async () => {
    const startMs = performance.now()
    const { source } = await limiter.check(`user:${latenciesMs.length % 1_000}`)
    latenciesMs.push(performance.now() - startMs)
    if (source !== 'outage') throw new Error(`decided by '${source}' while the server was stopped`)
  }
  const startMs = performance.now()
  for (let elapsed = 0; elapsed < durationMs; elapsed = performance.now() - startMs) {
    const isDue = pending.length < (elapsed * ratePerSecond) / 1_000
    if (isDue) pending.push(call())
    await (isDue ? nextTurn() : sleep(1)) // calls that are late don't wait for each other
  }
  await Promise.all(pending)
  delay.disable()
  return {
    latenciesMs: latenciesMs.toSorted((a, b) => a - b),
    loopDelayMs: Math.max(0, delay.max / 1e6 - RESOLUTION_MS),
  }
}

/** The value below which so much of sorted values is. */
export const quantile = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]!
