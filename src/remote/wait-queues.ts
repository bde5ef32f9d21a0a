import type { Decision } from '../core/decision.js'
import type { Signal } from '../core/on-abort.js'
import { WaitQueue, type WaitRequest } from '../engines/waits/wait-queue.js'

/** The pending calls of `wait` of a limiter, by key. */
export class WaitQueues {
  readonly #queues = new Map<string, WaitQueue>()
  readonly #hasTimers: boolean

  /** @param hasTimers false in a test's time: then a queue asks again only when it is woken */
  constructor(hasTimers: boolean) {
    this.#hasTimers = hasTimers
  }

  add(key: string, request: WaitRequest, signal: Signal | undefined): Promise<Decision> {
    const existing = this.#queues.get(key)
    if (existing !== undefined) return existing.add(request, signal)
    const queue = new WaitQueue()
    const waiting = queue.add(request, signal)
    this.#queues.set(key, queue)
    void queue.serve(
      ({ retryAfterMs }) => (this.#hasTimers ? retryAfterMs : undefined),
      () => this.#queues.delete(key),
    )
    return waiting
  }

  /** A key has changed: its calls ask again. */
  wake(key: string): void {
    this.#queues.get(key)?.wake()
  }

  wakeAll(): void {
    for (const queue of this.#queues.values()) queue.wake()
  }

  /** Rejects the calls for a key, or all of them. */
  reject(reason: Error, key?: string): void {
    if (key !== undefined) this.#queues.get(key)?.rejectAll(reason)
    else for (const queue of this.#queues.values()) queue.rejectAll(reason)
  }
}
