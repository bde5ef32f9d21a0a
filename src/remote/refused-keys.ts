import { lruCache } from '../core/lru-cache.js'
import type { RemoteDecision } from './remote-decision.js'

/** Most keys that are remembered. */
const MOST_KEYS = 10_000
/** Then the store is asked again: another process may have made room. */
const LONGEST_MS = 1_000

interface Refusal {
  readonly decision: RemoteDecision
  readonly cost: number
  /** When the request was sent. Redis decided later, so a time from here on ends no later than the refusal. */
  readonly sentMs: number
}

/** Refusals that are still true: a request of the same cost or more needs no answer of Redis. */
export class RefusedKeys {
  readonly #refusals = new (lruCache().LRUCache)<string, Refusal>({ max: MOST_KEYS })

  keep(key: string, decision: RemoteDecision, cost: number, sentMs: number): void {
    this.#refusals.set(key, { decision, cost, sentMs })
  }

  forget(key: string): void {
    this.#refusals.delete(key)
  }

  clear(): void {
    this.#refusals.clear()
  }

  /** The refusal of such a request, if one is known. */
  find(key: string, cost: number, nowMs: number): RemoteDecision | undefined {
    const refusal = this.#refusals.get(key)
    if (refusal === undefined || cost < refusal.cost) return undefined
    const agoMs = nowMs - refusal.sentMs
    const later = agoMs > LONGEST_MS ? undefined : refusal.decision.later(Math.floor(agoMs), cost)
    if (later === undefined) this.#refusals.delete(key)
    return later
  }
}
