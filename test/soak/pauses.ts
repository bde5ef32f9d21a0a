import { readFileSync } from 'node:fs'
import {
  createHistogram,
  type IntervalHistogram,
  monitorEventLoopDelay,
  PerformanceObserver,
} from 'node:perf_hooks'

const RESOLUTION_MS = 1

/** What this thread's event loop had to wait for; not while it rests. */
export class Pauses {
  /** By `monitorEventLoopDelay`: how late its timer was at most. */
  longestDelayMs = 0
  longestSliceMs = 0
  longestCollectionMs = 0
  /** A turn of the loop: one slice of decisions, and whatever else had to be done. In microseconds. */
  readonly #turns = createHistogram()
  readonly #waitedAtStartMs = waitedMs()
  readonly #startMs = performance.now()
  #delays: IntervalHistogram | undefined
  readonly #collections = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) {
      this.longestCollectionMs = Math.max(this.longestCollectionMs, duration)
    }
  })

  constructor() {
    this.#collections.observe({ entryTypes: ['gc'] })
  }

  watch(): void {
    this.#delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
    this.#delays.enable()
  }

  rest(): void {
    if (this.#delays === undefined) return
    this.#delays.disable()
    // What it records is the time from one of its timers to the next: the resolution is part of that.
    if (this.#delays.count > 0) {
      this.longestDelayMs = Math.max(this.longestDelayMs, this.#delays.max / 1e6 - RESOLUTION_MS)
    }
    this.#delays = undefined
  }

  turned(sliceMs: number, turnMs: number): void {
    this.longestSliceMs = Math.max(this.longestSliceMs, sliceMs)
    this.#turns.record(Math.max(1, Math.round(turnMs * 1e3)))
  }

  close(): void {
    this.rest()
    this.#collections.disconnect()
  }

  /** Which part of the turns, in percent, took at most how long. */
  turnMs(percent: number): number {
    return this.#turns.percentile(percent) / 1e3
  }

  /** The part of the time that the main thread was ready to run and had no processor; undefined where nobody tells. */
  get shareWaited(): number | undefined {
    const waited = waitedMs()
    if (waited === undefined || this.#waitedAtStartMs === undefined) return undefined
    return (waited - this.#waitedAtStartMs) / (performance.now() - this.#startMs)
  }
}

/** Linux tells, for the main thread: time run, time waited for a processor (both in nanoseconds), turns. */
function waitedMs(): number | undefined {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'utf8').split(' ')[1]) / 1e6
  } catch {
    return undefined
  }
}
