import { LRUCache } from 'lru-cache'
import { entrySize, type Kept, MOST_BYTES, PENDING_MS, type Records } from './records.js'

/** Records of this process. The oldest go when there are many. */
export class MemoryRecords implements Records {
  readonly #kept: LRUCache<string, Kept>

  constructor(most: number, lifetimeMs: number) {
    this.#kept = new LRUCache({
      max: most,
      ttl: lifetimeMs,
      maxSize: MOST_BYTES,
      sizeCalculation: entrySize,
    })
  }

  async begin(id: string, request: string): Promise<Kept | undefined> {
    const kept = this.#kept.get(id)
    if (kept === undefined) this.#kept.set(id, { request }, { ttl: PENDING_MS })
    return kept
  }

  async keep(id: string, kept: Kept): Promise<void> {
    this.#kept.set(id, kept)
  }

  async forget(id: string): Promise<void> {
    this.#kept.delete(id)
  }
}
