/**
 * Closed-loop load: a number of callers, each of which makes its next call when its last one has completed.
 */
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Figures } from './benchmark.js'
import { median } from './statistics.js'
import { collectGarbage } from './timing.js'

/** Makes the `i`th call. A promise is awaited. */
export type Call = (i: number) => unknown

export interface Loop {
  /** Concurrent callers. */
  readonly callers: number
  /** Calls in total. */
  readonly count: number
  /** Keys per call. */
  readonly keysPerCall: number
  /** Milliseconds that each caller waits before a call. @default 0 */
  readonly idleMs?: number
}

export const LOOP_UNITS = {
  thousandASecond: 'thousand decisions per second',
  p50Us: 'median latency, microseconds',
  callerNs: "busy time of the caller's event loop per decision, nanoseconds",
}

/**
 * For single keys, one call in 16 is timed: reading the clock for each would take a considerable part of the
 * time.
 */
const CALLS_PER_SAMPLE = 16
/** The part of the calls made first, untimed, for V8 to compile the code. */
const WARM_UP = 0.25

/** Returns the figures of {@link LOOP_UNITS}. */
export async function timeInFlight(loop: Loop, call: Call): Promise<Figures> {
  const { count, keysPerCall } = loop
  await run({ ...loop, count: Math.ceil(count * WARM_UP) }, call)
  collectGarbage()
  const before = performance.eventLoopUtilization()
  const start = process.hrtime.bigint()
  const timesMs = await run(loop, call)
  const elapsedNs = Number(process.hrtime.bigint() - start)
  const { active: activeMs } = performance.eventLoopUtilization(before)
  const keys = count * keysPerCall
  return {
    thousandASecond: (1e6 * keys) / elapsedNs,
    p50Us: 1e3 * median(timesMs),
    callerNs: (1e6 * activeMs) / keys,
  }
}

/** The latencies of the timed calls, in milliseconds. */
async function run({ callers, count, keysPerCall, idleMs = 0 }: Loop, call: Call): Promise<number[]> {
  const every = keysPerCall === 1 && idleMs === 0 ? CALLS_PER_SAMPLE : 1
  const timesMs: number[] = []
  let next = 0
  const caller = async () => {
    while (next < count) {
      const i = next++
      if (idleMs > 0) await sleep(idleMs)
      const isTimed = i % every === 0
      const start = isTimed ? performance.now() : 0
      const result = call(i)
      if (result instanceof Promise) await result
      if (isTimed) timesMs.push(performance.now() - start)
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return timesMs
}
