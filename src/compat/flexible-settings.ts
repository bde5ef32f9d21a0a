/** The settings of a limiter of rate-limiter-flexible, which can be changed at any time. */
import type { RateLimiterLike } from 'rate-limiter-flexible'
import { invalid } from '../core/errors.js'

/** What the constructor takes, beside the options of all drop-ins. */
export interface FlexibleOptions {
  /** How many points can be consumed in `duration`: any finite number. */
  points: number
  /** Seconds, 0 or more. With 0, points are consumed for ever. */
  duration: number
  /** How many seconds a key is refused that has consumed more than `points`. Default: 0, until points return. */
  blockDuration?: number
  /** Whether admitted calls are delayed, to spread them over `duration`. Default: false */
  execEvenly?: boolean
  /** The shortest delay of `execEvenly`, in milliseconds. Default: `duration * 1000 / points`, rounded up */
  execEvenlyMinDelayMs?: number
  /** Begins every key: limiters of different prefixes answer by it in a union. Default: `'rlflx'` */
  keyPrefix?: string
  /** Not read, as by the original in memory, whose type has it. */
  insuranceLimiter?: RateLimiterLike
}

/** The properties of `RateLimiterAbstract`, as rate-limiter-flexible checks them. */
export class FlexibleSettings {
  #points!: number
  #duration!: number
  #blockDuration = 0
  #execEvenly = false
  #execEvenlyMinDelayMs: number | undefined
  #keyPrefix = 'rlflx'

  constructor(options: FlexibleOptions) {
    this.points = options?.points
    this.duration = options?.duration
    this.blockDuration = options.blockDuration ?? 0
    this.execEvenly = options.execEvenly ?? false
    this.execEvenlyMinDelayMs = options.execEvenlyMinDelayMs
    this.keyPrefix = options.keyPrefix ?? 'rlflx'
  }

  get points(): number {
    return this.#points
  }

  set points(value: number) {
    if (!Number.isFinite(value)) throw invalid('points', value, 'a finite number')
    this.#points = value
  }

  get duration(): number {
    return this.#duration
  }

  set duration(value: number) {
    if (!Number.isFinite(value) || value < 0) throw invalid('duration', value, 'seconds, 0 or more')
    this.#duration = value
  }

  get blockDuration(): number {
    return this.#blockDuration
  }

  set blockDuration(value: number | undefined) {
    this.#blockDuration = value ?? 0
  }

  get execEvenly(): boolean {
    return this.#execEvenly
  }

  set execEvenly(value: boolean | undefined) {
    this.#execEvenly = Boolean(value)
  }

  get execEvenlyMinDelayMs(): number {
    if (this.#execEvenlyMinDelayMs !== undefined) return this.#execEvenlyMinDelayMs
    return this.#points > 0 ? Math.ceil((this.#duration * 1000) / this.#points) : 0
  }

  set execEvenlyMinDelayMs(value: number | undefined) {
    this.#execEvenlyMinDelayMs = value
  }

  get keyPrefix(): string {
    return this.#keyPrefix
  }

  set keyPrefix(value: string | undefined) {
    if (value !== undefined && typeof value !== 'string') throw invalid('keyPrefix', value, 'a string')
    this.#keyPrefix = value ?? 'rlflx'
  }

  /** The milliseconds before an admitted call resolves, with `execEvenly`. */
  delayMs(msBeforeNext: number, remainingPoints: number, consumedPoints: number): number {
    const delayMs = Math.ceil(msBeforeNext / (remainingPoints + 2))
    return delayMs < this.execEvenlyMinDelayMs ? consumedPoints * this.execEvenlyMinDelayMs : delayMs
  }
}
