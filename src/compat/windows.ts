import type { Limiter } from '../api/limiter.js'
import type { Clock } from '../core/clock.js'
import { MillraceError } from '../core/errors.js'
import type { Counts } from './counts.js'
import { FixedCounts } from './fixed-counts.js'
import { type CheckedOptions, type CompatOptions, checkCompatOptions } from './options.js'
import { SlidingCounts } from './sliding-counts.js'
import { afterClosing, joined, type TableStats, tablesOf } from './stats.js'
import { WallClock } from './wall-clock.js'

/** Half of the longest window of a limiter, 10,000 years: a fixed window keeps its hits for two. */
const MOST_MS = 5_000 * 365 * 86_400_000

/** What belongs to one window. */
export interface OfWindow {
  clearAll(): void
  limiters(): readonly Limiter[]
  close(): Promise<void>
}

/** Creates what belongs to a window of so many milliseconds. */
export type CreateOfWindow<Of extends OfWindow> = (
  windowMs: number,
  options: CheckedOptions,
  clock: Clock,
) => Of

/** The counts of a window, by the option `algorithm`. */
export const countsOf: CreateOfWindow<Counts> = (windowMs, options, clock) =>
  options.algorithm === 'fixed-window'
    ? new FixedCounts(windowMs, options, clock)
    : new SlidingCounts(windowMs, options, clock)

/**
 * The counts of a drop-in whose window comes with each call: those of each distinct window, by one clock. Another
 * window of the same key counts apart.
 *
 * @example
 * ```ts
 * const windows = new Windows(countsOf, { algorithm: 'fixed-window' })
 * const nowMs = windows.clock.read()
 * const { hits, resetMs } = windows.of(60_000).hit('user:42', 100)
 * console.log(hits, new Date(nowMs + resetMs))
 * ```
 */
export class Windows<Of extends OfWindow> {
  /** Read it once at the beginning of each call of the drop-in. */
  readonly clock: WallClock
  readonly #options: CheckedOptions
  readonly #create: CreateOfWindow<Of>
  readonly #counts = new Map<number, Of>()
  /** The counts of the last call. Most drop-ins have one window. */
  #lastMs = 0
  /** What the tables have counted that are closed. */
  #closed: TableStats[] = []
  #last: Of | undefined

  /** @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION` */
  constructor(create: CreateOfWindow<Of>, options?: CompatOptions, clock = new WallClock()) {
    this.clock = clock
    this.#create = create
    this.#options = checkCompatOptions(options)
  }

  /**
   * Returns the counts of a window. It is rounded up to whole milliseconds, and at most 5,000 years.
   * @param windowMs milliseconds: above 0
   * @throws {MillraceError} `ERR_MILLRACE_INVALID_DURATION`; `ERR_MILLRACE_INVALID_OPTION` for one window more
   * than `maxWindows`; `ERR_MILLRACE_ARENA_TOO_LARGE`
   */
  of(windowMs: number): Of {
    if (this.#last !== undefined && windowMs === this.#lastMs) return this.#last
    if (typeof windowMs !== 'number' || !(windowMs > 0)) {
      throw new MillraceError('ERR_MILLRACE_INVALID_DURATION', 'window', windowMs, 'milliseconds above 0')
    }
    const wholeMs = Math.min(Math.ceil(windowMs), MOST_MS)
    const counts = this.#counts.get(wholeMs) ?? this.#add(wholeMs)
    this.#lastMs = windowMs
    this.#last = counts
    return counts
  }

  /** The counts of all windows that there are. */
  all(): Iterable<Of> {
    return this.#counts.values()
  }

  /** What the tables of all windows say of themselves. */
  get tables(): TableStats {
    const limiters = [...this.#counts.values()].flatMap((counts) => counts.limiters())
    return joined([tablesOf(limiters), ...this.#closed])
  }

  /** Forgets all keys in all windows. */
  clearAll(): void {
    this.clock.read()
    for (const counts of this.#counts.values()) counts.clearAll()
  }

  /** Releases the memory of all windows, and forgets them. They can be used again. */
  async close(): Promise<void> {
    const closing = [...this.#counts.values()]
    this.#closed = [afterClosing(this.tables)]
    this.#counts.clear()
    this.#last = undefined
    await Promise.all(closing.map((counts) => counts.close()))
  }

  #add(windowMs: number): Of {
    const { maxWindows } = this.#options
    if (this.#counts.size >= maxWindows) {
      const expected = `at least ${maxWindows + 1}, for one more window of ${windowMs} ms`
      throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'maxWindows', maxWindows, expected)
    }
    const counts = this.#create(windowMs, this.#options, this.clock)
    this.#counts.set(windowMs, counts)
    return counts
  }
}
