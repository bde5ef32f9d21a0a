import { hrtime } from 'node:process'
import { MillraceError } from './errors.js'
import { type Inspect, inspectAs } from './inspect.js'
import { WordWatch } from './word-watch.js'

/** A source of time. Attached threads must read clocks that agree to less than one granule. */
export interface Clock {
  /**
   * Milliseconds since any fixed moment, fractions welcome; finite. Where it steps back by up to an hour (but at
   * least two and at most 2^20 granules), limits stand still until it is there again; by two granules more than that, and
   * what was counted is forgotten.
   */
  now(): number
}

/**
 * The default: milliseconds since the machine started, to the nanosecond, from the operating system's monotonic
 * clock. It is one clock for all threads and processes of a machine, and does not move when the wall clock is set, nor by
 * fake timers: see `docs/testing.md`.
 * `process.hrtime()` is the cheapest way to it that Node has (32 ns; `Date.now()` and `performance.now()` 39 ns,
 * of which the system's own reading is 23: AMD EPYC Zen 4, Node 20.20, 2026-11-21, `npm run bench -- --case clock`).
 */
export const monotonicClock: Clock = {
  now() {
    const time = hrtime()
    return time[0] * 1e3 + time[1] * 1e-6
  },
}

/** A clock that stands until it is turned: for tests and for replays. It lives in shared memory. */
export interface ManualClock extends Clock {
  /** Moves on by `ms` (below 0: back) and wakes whoever waits by this clock, in every thread. */
  advance(ms: number): void
  /** Moves to `ms` and wakes whoever waits by this clock, in every thread. */
  set(ms: number): void
}

const BYTES = 16
const CHANGES = 2 // index in 32-bit words of the count of turns, behind the reading's 64 bits

/** What {@link manualClock} returns; kept apart so that only `share()` and `wait()` see the memory. */
export class SharedManualClock implements ManualClock {
  /** A double, bit by bit as one 64-bit integer (so that no thread reads half of it), then the count of turns. */
  readonly buffer: SharedArrayBuffer
  /** Calls after the clock was turned, by any thread. */
  readonly changes: WordWatch
  readonly #bits: BigInt64Array
  readonly #words: Int32Array
  readonly #asNumber = new Float64Array(1)
  readonly #asBits = new BigInt64Array(this.#asNumber.buffer)

  /** Whether this is the memory of a manual clock, as far as can be seen. */
  static isMemory(value: unknown): value is SharedArrayBuffer {
    return value instanceof SharedArrayBuffer && value.byteLength === BYTES
  }

  constructor(buffer = new SharedArrayBuffer(BYTES)) {
    this.buffer = buffer
    this.#bits = new BigInt64Array(buffer, 0, 1)
    this.#words = new Int32Array(buffer)
    this.changes = new WordWatch(this.#words, CHANGES)
  }

  /** What `console.log` shows. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    return inspectAs('ManualClock', { nowMs: this.now() }, options, inspect)
  }

  now(): number {
    this.#asBits[0] = Atomics.load(this.#bits, 0)
    return this.#asNumber[0]!
  }

  advance(ms: number): void {
    checkReading(ms, 'ms')
    for (;;) {
      const before = Atomics.load(this.#bits, 0)
      this.#asBits[0] = before
      const next = this.#asNumber[0]! + ms
      checkReading(next, 'ms')
      this.#asNumber[0] = next
      if (Atomics.compareExchange(this.#bits, 0, before, this.#asBits[0]!) === before) break
    }
    this.#countChange()
  }

  set(ms: number): void {
    checkReading(ms, 'ms')
    this.#asNumber[0] = ms
    Atomics.store(this.#bits, 0, this.#asBits[0]!)
    this.#countChange()
  }

  #countChange(): void {
    Atomics.add(this.#words, CHANGES, 1)
    Atomics.notify(this.#words, CHANGES)
  }
}

/**
 * A clock for tests and replays: it stands at `startMs` until `advance` or `set` turns it, and threads that attach to
 * a limiter with this clock see it too.
 * @throws MillraceError `ERR_MILLRACE_INVALID_CLOCK` for a reading that is no finite number
 */
export function manualClock(startMs = 0): ManualClock {
  const clock = new SharedManualClock()
  clock.set(startMs)
  return clock
}

/** Holds a reading of a clock to its contract. @throws MillraceError `ERR_MILLRACE_INVALID_CLOCK` */
export function checkReading(ms: unknown, option = 'clock.now()'): asserts ms is number {
  if (typeof ms !== 'number' || !Number.isFinite(ms)) {
    throw new MillraceError('ERR_MILLRACE_INVALID_CLOCK', option, ms, 'a finite number of milliseconds')
  }
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_CLOCK` where `value` can't be a {@link Clock} */
export function checkClock(value: unknown): asserts value is Clock {
  if (typeof (value as Clock | null)?.now !== 'function') {
    throw new MillraceError(
      'ERR_MILLRACE_INVALID_CLOCK',
      'clock',
      value,
      'an object with now(): milliseconds',
    )
  }
  readingOf(value as Clock)
}

/** A reading that has been checked. @throws MillraceError `ERR_MILLRACE_INVALID_CLOCK` */
export function readingOf(clock: Clock): number {
  const ms = clock.now()
  checkReading(ms)
  return ms
}
