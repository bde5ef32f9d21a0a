/** Closed loops: so many callers at the same time, each of which asks again as soon as it is answered, as connections do. */
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Figures } from './benchmark.js'
import { median } from './statistics.js'
import { collectGarbage } from './timing.js'

/** Asks the `i`th question; whoever answers with a promise is awaited. */
export type Ask = (i: number) => unknown

export interface Loop {
  /** How many ask at the same time. */
  readonly callers: number
  /** Questions in all. */
  readonly count: number
  /** Keys that one question is about. */
  readonly keysEach: number
  /** How long each caller rests before it asks, in milliseconds; by default not at all. */
  readonly restMs?: number
}

export const LOOP_UNITS = {
  thousandASecond: 'thousand decisions a second',
  p50Us: 'half of the answers within, microseconds',
  callerNs: 'nanoseconds a decision in which the event loop of who asks is busy',
}

/** Of single keys, one answer in so many is timed: reading the clock for each would take a good part of the time. */
const ANSWERS_PER_SAMPLE = 16
/** How much is asked first, for V8 to compile. */
const WARM_UP = 0.25

/** Answers with the figures of {@link LOOP_UNITS}. */
export async function timeInFlight(loop: Loop, ask: Ask): Promise<Figures> {
  const { count, keysEach } = loop
  await run({ ...loop, count: Math.ceil(count * WARM_UP) }, ask)
  collectGarbage()
  const before = performance.eventLoopUtilization()
  const start = process.hrtime.bigint()
  const timesMs = await run(loop, ask)
  const elapsedNs = Number(process.hrtime.bigint() - start)
  const { active: activeMs } = performance.eventLoopUtilization(before)
  const keys = count * keysEach
  return {
    thousandASecond: (1e6 * keys) / elapsedNs,
    p50Us: 1e3 * median(timesMs),
    callerNs: (1e6 * activeMs) / keys,
  }
}

/** How long the questions that were timed took, in milliseconds. */
async function run({ callers, count, keysEach, restMs = 0 }: Loop, ask: Ask): Promise<number[]> {
  const every = keysEach === 1 && restMs === 0 ? ANSWERS_PER_SAMPLE : 1
  const timesMs: number[] = []
  let next = 0
  const caller = async () => {
    while (next < count) {
      const i = next++
      if (restMs > 0) await sleep(restMs)
      const isTimed = i % every === 0
      const start = isTimed ? performance.now() : 0
      const answer = ask(i)
      if (answer instanceof Promise) await answer
      if (isTimed) timesMs.push(performance.now() - start)
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return timesMs
}
