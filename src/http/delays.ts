import type { AsyncLimiter } from '../api/async-limiter.js'
import type { Limiter } from '../api/limiter.js'
import type { Decision } from '../core/decision.js'
import { afterMs } from '../core/long-timer.js'
import { MAX_LIMIT } from '../core/rule-algorithms.js'
import { type CountOptions, KeyCounts, type Windows } from './key-counts.js'
import { checkDelay, type DelayNumbers } from './options.js'

/** A request that is slowed down instead of refused. */
export interface SlowCall {
  readonly limiter: Limiter | AsyncLimiter
  readonly key: string
  readonly decision: Decision
}

/**
 * How long requests wait that are slowed down, and how many. The wait grows with the units that the key has used
 * in its window: those that its limiter has counted, and in this process those over the limit.
 */
export class Delays {
  readonly #numbers: DelayNumbers
  readonly #over: KeyCounts
  /** The requests of each key that wait. */
  readonly #waiting = new Map<string, number>()
  #all = 0

  /** Undefined without the option `delay`. */
  static of(options: CountOptions & { readonly delay?: unknown }, windows: Windows): Delays | undefined {
    const numbers = checkDelay(options.delay)
    return numbers && new Delays(numbers, options, windows)
  }

  private constructor(numbers: DelayNumbers, options: CountOptions, windows: Windows) {
    this.#numbers = numbers
    this.#over = new KeyCounts('over the limit', MAX_LIMIT, options, windows)
  }

  /** Whether one more request of a key may wait. */
  hasPlace(key: string): boolean {
    const { mostOfKey, mostInAll } = this.#numbers
    return this.#all < mostInAll && (this.#waiting.get(key) ?? 0) < mostOfKey
  }

  /** Milliseconds that an admitted request waits, 0 or more. */
  afterAdmission({ limiter, key, decision }: SlowCall): number {
    return this.#msAt(decision, this.#over.of(limiter, decision).peek(key, 0))
  }

  /** Milliseconds that a request over the limit waits. Counts its cost. */
  afterRefusal({ limiter, key, decision }: SlowCall, cost: number): number {
    const over = this.#over.of(limiter, decision)
    const counted = over.check(key, cost)
    return this.#msAt(decision, counted)
  }

  /**
   * Waits. The place is free again when it ends.
   * @param onEnd calls back when the connection has closed
   * @returns whether the client has gone
   */
  wait(key: string, ms: number, onEnd: (gone: () => void) => void): Promise<boolean> {
    this.#enter(key)
    return new Promise((resolve) => {
      let isWaiting = true
      const end = (isGone: boolean): void => {
        if (!isWaiting) return
        isWaiting = false
        stop()
        this.#leave(key)
        resolve(isGone)
      }
      const stop = afterMs(ms, () => end(false))
      onEnd(() => end(true))
    })
  }

  /** Forgets the units of a key that were over its limit. */
  forget(key: string): void {
    this.#over.forget(key)
  }

  close(): Promise<void> {
    return this.#over.close()
  }

  #msAt({ limit, remaining }: Decision, over: Decision): number {
    const { after, ms, maxMs } = this.#numbers
    const used = limit - remaining + (over.limit - over.remaining)
    return Math.min(Math.max(0, used - after) * ms, maxMs)
  }

  #enter(key: string): void {
    this.#all++
    this.#waiting.set(key, (this.#waiting.get(key) ?? 0) + 1)
  }

  #leave(key: string): void {
    this.#all--
    const left = this.#waiting.get(key)! - 1
    if (left === 0) this.#waiting.delete(key)
    else this.#waiting.set(key, left)
  }
}
