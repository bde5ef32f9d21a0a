import { PartitionedBatch } from './partitioned-batch.js'
import type { PoolRequest } from './request.js'

/** Compact the backlog after this many processed entries. */
const COMPACT_AFTER = 1_024

/** The requests that have no room in their rings, in the order of the calls. */
export class Backlog {
  readonly #entries: (PoolRequest | PartitionedBatch)[] = []
  /** The index of the first entry that isn't processed. */
  #head = 0

  get isEmpty(): boolean {
    return this.#entries.length === 0
  }

  push(request: PoolRequest | PartitionedBatch): void {
    this.#entries.push(request)
  }

  /**
   * Calls `tryEnqueue` with one entry after another until it returns false. Drops aborted entries. Returns
   * how many keys were dropped.
   */
  drain(tryEnqueue: (request: PoolRequest | PartitionedBatch) => boolean): number {
    const entries = this.#entries
    let dropped = 0
    let at = this.#head
    for (; at < entries.length; at++) {
      const request = entries[at]!
      if (request.isSettled) dropped += request instanceof PartitionedBatch ? request.keysLeft : 1
      else if (!tryEnqueue(request)) break
    }
    if (at === entries.length) entries.length = at = 0
    else if (at > COMPACT_AFTER) {
      entries.splice(0, at)
      at = 0
    }
    this.#head = at
    return dropped
  }
}
