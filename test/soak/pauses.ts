import { closeSync, openSync, readSync } from 'node:fs'
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
  /** The longest turn in time on a processor: the rest of a turn belongs to whoever had the processor meanwhile. */
  longestRunMs = 0
  /** The part of the time that this thread was ready to run and had no processor; undefined where nobody tells. */
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
    // What it records is the time from one of its timers to the next: the resolution is part of that.
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

  /** Which part of the turns, in percent, took at most how long. */
  turnMs(percent: number): number {
    return this.#turns.percentile(percent) / 1e3
  }
}

/** Linux tells how long the main thread has run and has waited for a processor, a scheduler's tick late at most. */
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

  /** Since the process started, and since this was opened. */
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
