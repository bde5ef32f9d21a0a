import type { Decision } from '../core/decision.js'
import type { Signal } from '../core/on-abort.js'
import { WaitQueue, type WaitRequest } from '../engines/waits/wait-queue.js'
import type { WaitQueues } from '../engines/waits/wait-queues.js'

/** A key of one member: its fingerprint, and the pending calls of that limiter. */
export interface AwaitedKey {
  readonly waiters: WaitQueues
  readonly lo: number
  readonly hi: number
}

/**
 * The pending `wait()` calls on a group, in a queue for each combination of keys. A change of one of its keys
 * in this thread wakes the queue. So does a change for all keys of a member. Closing a member rejects all
 * calls.
 *
 * Calls with only some keys in common are in different queues, and may overtake each other. So a key that is
 * full for an hour does not block the requests of another key.
 */
export class GroupQueues<D extends Decision> {
  readonly #queues = new Map<string, WaitQueue<D>>()

  /** @see WaitQueues.wait */
  wait(
    keys: readonly AwaitedKey[],
    request: WaitRequest<D>,
    timerMs: (refusal: D) => number | undefined,
    signal?: Signal,
  ): Promise<D> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    const name = keys.map(({ lo, hi }) => `${lo}:${hi}`).join()
    const existing = this.#queues.get(name)
    if (existing !== undefined) return existing.add(request, signal)
    const queue = new WaitQueue<D>()
    const waiting = queue.add(request, signal)
    for (const { waiters, lo, hi } of keys) waiters.join(lo, hi, queue)
    this.#queues.set(name, queue)
    void queue.serve(timerMs, () => {
      this.#queues.delete(name)
      for (const { waiters, lo, hi } of keys) waiters.leave(lo, hi, queue)
    })
    return waiting
  }
}
