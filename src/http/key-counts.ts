import type { AsyncLimiter } from '../api/async-limiter.js'
import type { Limiter } from '../api/limiter.js'
import type { Clock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import { createLimiter } from '../create/create.js'
import { hasManySources } from './headers/form-by-policy.js'

/** The windows of policies that have counts at once. A service has fewer. */
const MOST_WINDOWS = 64

export interface CountOptions {
  readonly maxKeys?: number | undefined
  readonly clock?: Clock | undefined
}

/** The rules of all routes. */
export interface Windows {
  /** The longest window of all rules. */
  readonly longestWindowMs: number
}

/** Counts what keys do in this process, each in its own window. */
export class KeyCounts {
  readonly #name: string
  readonly #limit: number
  readonly #options: { readonly maxKeys?: number; readonly clock?: Clock }
  readonly #windows: Windows
  /** By window, the oldest first. */
  readonly #counts = new Map<number, Limiter>()

  /** @param limit the most that is counted of a key */
  constructor(name: string, limit: number, { maxKeys, clock }: CountOptions, windows: Windows) {
    this.#name = name
    this.#limit = limit
    this.#options = { ...(maxKeys !== undefined && { maxKeys }), ...(clock !== undefined && { clock }) }
    this.#windows = windows
    this.#at(windows.longestWindowMs)
  }

  /** The counts in the window of a decision's key: that of its policy, else the longest of all rules. */
  of(limiter: Limiter | AsyncLimiter, decision: Decision): Limiter {
    const owner = hasManySources(limiter) ? limiter.deciderOf(decision) : limiter
    if (owner === limiter) return this.#at(this.#windows.longestWindowMs)
    return this.#at(Math.max(...owner.rules.map(({ windowMs }) => windowMs)))
  }

  forget(key: string): void {
    for (const counts of this.#counts.values()) counts.clear(key)
  }

  async close(): Promise<void> {
    for (const counts of this.#counts.values()) counts.close()
  }

  #at(windowMs: number): Limiter {
    const known = this.#counts.get(windowMs)
    if (known !== undefined) return known
    if (this.#counts.size === MOST_WINDOWS) {
      const [oldestMs, oldest] = this.#counts.entries().next().value!
      this.#counts.delete(oldestMs)
      oldest.close()
    }
    const window = `${windowMs}ms`
    const counts = createLimiter({ name: this.#name, limit: this.#limit, window, ...this.#options })
    this.#counts.set(windowMs, counts)
    return counts
  }
}
