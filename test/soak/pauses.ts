import { closeSync, openSync, readSync } from 'node:fs'
import {
  createHistogram,
  type IntervalHistogram,
  monitorEventLoopDelay,
  PerformanceObserver,
} from 'node:perf_hooks'

const RESOLUTION_MS = 1

/** Pauses of this thread's event loop, outside the rests. */
export class Pauses {
  /** The longest delay of the timer of `monitorEventLoopDelay`. */
  longestDelayMs = 0
  longestSliceMs = 0
  longestCollectionMs = 0
  /** The duration of a turn of the loop, with one slice of decisions, in microseconds. */
  readonly #turns = createHistogram()
  /** The longest turn in processor time, without the time in which other threads had the processor. */
  longestRunMs = 0
  /**
   * The share of time in which this thread was ready but had no processor; undefined if the system does not
   * report it.
   */
  shareWaited: number | undefined
  readonly #schedule = Schedule.open()
  readonly #startMs = performance.now()
  #ranMs = 0
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
    this.#ranMs = this.#schedule?.read().ranMs ?? 0
  }

  rest(): void {
    if (this.#delays === undefined) return
    this.#delays.disable()
    // The histogram records the time between two timers, which includes the resolution.
    if (this.#delays.count > 0) {
      this.longestDelayMs = Math.max(this.longestDelayMs, this.#delays.max / 1e6 - RESOLUTION_MS)
    }
    this.#delays = undefined
    if (this.#schedule === undefined) return
    this.shareWaited = this.#schedule.read().waitedMs / (performance.now() - this.#startMs)
  }

  turned(sliceMs: number, turnMs: number): void {
    this.longestSliceMs = Math.max(this.longestSliceMs, sliceMs)
    this.#turns.record(Math.max(1, Math.round(turnMs * 1e3)))
    if (this.#schedule === undefined) return
    const { ranMs } = this.#schedule.read()
    this.longestRunMs = Math.max(this.longestRunMs, ranMs - this.#ranMs)
    this.#ranMs = ranMs
  }

  close(): void {
    this.rest()
    this.#collections.disconnect()
    this.#schedule?.close()
  }

  /** The percentiles of a turn's duration. */
  turnMs(percent: number): number {
    return this.#turns.percentile(percent) / 1e3
  }
}

/**
 * Linux's times that the main thread has run and has waited for a processor, at most a scheduler tick old.
 */
class Schedule {
  readonly #file: number
  readonly #text = Buffer.alloc(80)
  readonly #before: number

  static open(): Schedule | undefined {
    try {
      return new Schedule(openSync('/proc/self/schedstat', 'r'))
    } catch {
      return undefined
    }
  }

  private constructor(file: number) {
    this.#file = file
    this.#before = this.#fields()[1]!
  }

  /** Times since the process started, and since this object was created. */
  read(): { ranMs: number; waitedMs: number } {
    const [ran, waited] = this.#fields()
    return { ranMs: ran! / 1e6, waitedMs: (waited! - this.#before) / 1e6 }
  }

  close(): void {
    closeSync(this.#file)
  }

  #fields(): number[] {
    const length = readSync(this.#file, this.#text, 0, this.#text.length, 0)
    return this.#text.toString('latin1', 0, length).split(' ').map(Number)
  }
}
