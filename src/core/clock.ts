import { hrtime } from 'node:process'
import { MillraceError } from './errors.js'
import { type Inspect, inspectAs } from './inspect.js'
import { again } from './tries.js'
import { WordWatch } from './word-watch.js'

/** A source of time. The clocks of attached threads must differ by less than one granularity. */
export interface Clock {
  /**
   * Returns the time.
   *
   * If it steps back by up to an hour, Millrace keeps using its last reading until the clock is there again.
   * (The hour is at least 2 and at most 1,048,576 buckets.) If it steps back by two buckets more than that,
   * the counts are forgotten.
   * @returns milliseconds since any fixed moment: a finite number, fractions included
   * @example
   * ```ts
   * import { type Clock, createLimiter } from 'millrace'
   *
   * const clock: Clock = { now: () => performance.now() }
   * const limiter = createLimiter({ limit: 100, window: '1m', clock })
   * ```
   */
  now(): number
}

/** Readings of one moment by two threads may differ by this much, or by a granule if that is longer. */
export const MOST_APART_MS = 5

/**
 * The default clock: milliseconds, to the nanosecond, by a clock that all threads and processes of the machine
 * share. Setting the wall clock does not change it, and fake timers do not either: see
 * `docs/how-to/testing.md`.
 *
 * Its source is chosen by what it does. `process.hrtime()` is the system's monotonic clock in Node.js and the
 * cheapest way to read it: 32 ns. `Date.now()` and `performance.now()` take 39 ns. The system's own reading
 * takes 23 ns of these (AMD EPYC Zen 4, Node 20.20, 2026-11-21, `npm run bench -- --case clock`). In Bun and
 * Deno `process.hrtime()` begins at 0 in each process or thread. There the addon reads the system's clock
 * (`native/default-clock.ts`). Without the addon the wall clock at the thread's start, continued by
 * `performance.now()`, is what threads and processes have in common.
 *
 * Limiters take it from `defaultClock()`, which makes the choice.
 */
export const monotonicClock: Clock = { now: isOfTheMachine(hrtimeMs) ? hrtimeMs : sinceEpochMs }

function hrtimeMs(): number {
  const time = hrtime()
  return time[0] * 1e3 + time[1] * 1e-6
}

function sinceEpochMs(): number {
  return performance.timeOrigin + performance.now()
}

/**
 * Whether a clock was running before this process began. One that was not is another clock in each process.
 * `performance.now()` begins at 0 in each process, or in each thread.
 */
function isOfTheMachine(now: () => number): boolean {
  return now() - performance.now() > MOST_APART_MS
}

/** A clock that moves only when it is set, for tests and replays. It is in shared memory. */
export interface ManualClock extends Clock {
  /**
   * Moves the clock by `ms`. Wakes all calls of `wait` that use it, in every thread.
   * @param ms milliseconds; negative: back
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_CLOCK` if `ms` or the new reading is not a finite number
   * @example
   * ```ts
   * import { createLimiter, manualClock } from 'millrace'
   *
   * const clock = manualClock()
   * const limiter = createLimiter({ limit: 1, window: '1m', clock })
   * limiter.check('user:42')
   * clock.advance(61_000) // one window, and one bucket of a second
   * console.log(limiter.check('user:42').allowed) // true
   * ```
   */
  advance(ms: number): void
  /**
   * Sets the clock to `ms`. Wakes all calls of `wait` that use it, in every thread.
   * @param ms the new reading, in milliseconds
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_CLOCK` if `ms` is not a finite number
   * @example
   * ```ts
   * import { manualClock } from 'millrace'
   *
   * const clock = manualClock()
   * clock.set(Date.parse('2026-01-01T00:00:00Z')) // the time of the first line of a log
   * ```
   */
  set(ms: number): void
}

const BYTES = 16
const CHANGES = 2 // index of the word that counts changes, after the 64 bits of the reading

/** The clock of {@link manualClock}. Only `share()` and `wait()` use its memory. */
export class SharedManualClock implements ManualClock {
  /**
   * The reading, then the count of changes. The reading is a double, stored as one integer so that it is
   * atomic.
   */
  readonly buffer: SharedArrayBuffer
  /** Calls its listeners after any thread has changed the clock. */
  readonly changes: WordWatch
  readonly #bits: BigInt64Array
  readonly #words: Int32Array
  readonly #asNumber = new Float64Array(1)
  readonly #asBits = new BigInt64Array(this.#asNumber.buffer)

  /** Whether `value` may be the memory of a manual clock. */
  static isMemory(value: unknown): value is SharedArrayBuffer {
    return value instanceof SharedArrayBuffer && value.byteLength === BYTES
  }

  constructor(buffer = new SharedArrayBuffer(BYTES)) {
    this.buffer = buffer
    this.#bits = new BigInt64Array(buffer, 0, 1)
    this.#words = new Int32Array(buffer)
    this.changes = new WordWatch(this.#words, CHANGES)
  }

  /** The output of `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    return inspectAs('ManualClock', { nowMs: this.now() }, options, inspect)
  }

  now(): number {
    this.#asBits[0] = Atomics.load(this.#bits, 0)
    return this.#asNumber[0]!
  }

  advance(ms: number): void {
    checkReading(ms, 'ms')
    for (let tries = 0; ; tries = again(tries)) {
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
 * Creates a clock for tests and replays. It stays at `startMs` until `advance` or `set` changes it. Threads
 * that attach to a limiter with this clock use it too.
 * @param startMs the first reading, in milliseconds. Default: 0
 * @returns the clock, for the option `clock` of {@link createLimiter}
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_CLOCK` if `startMs` is not a finite number
 * @example
 * ```ts
 * import { createLimiter, manualClock } from 'millrace'
 *
 * const clock = manualClock()
 * const limiter = createLimiter({ limit: 1, window: '1s', clock })
 * console.log(limiter.check('user:42').allowed, limiter.check('user:42').allowed) // true false
 * ```
 */
export function manualClock(startMs = 0): ManualClock {
  const clock = new SharedManualClock()
  clock.set(startMs)
  return clock
}

/** Checks a reading of a clock. @throws MillraceError `ERR_MILLRACE_INVALID_CLOCK` */
export function checkReading(ms: unknown, option = 'clock.now()'): asserts ms is number {
  if (typeof ms !== 'number' || !Number.isFinite(ms)) {
    throw new MillraceError('ERR_MILLRACE_INVALID_CLOCK', option, ms, 'a finite number of milliseconds')
  }
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_CLOCK` if `value` is not a {@link Clock} */
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

/** Reads a clock and checks the reading. @throws MillraceError `ERR_MILLRACE_INVALID_CLOCK` */
export function readingOf(clock: Clock): number {
  const ms = clock.now()
  checkReading(ms)
  return ms
}
