import { LRUCache } from 'lru-cache'
import { entrySize, type Kept, MOST_BYTES, type Records } from './records.js'

/**
 * Records of a store that the counts need, too. An engine forgets its oldest ones when it has kept many, so that clients
 * can't fill the store.
 */
export class BoundedRecords implements Records {
  readonly #records: Records
  readonly #lifetimeMs: number
  /** By identifiers of what this engine has kept: until when the store has it. */
  readonly #own: LRUCache<string, number>

  /** @param onError told that a record could not be forgotten: it goes with its time */
  constructor(records: Records, most: number, lifetimeMs: number, onError: (error: Error) => void) {
    this.#records = records
    this.#lifetimeMs = lifetimeMs
    this.#own = new LRUCache({
      max: most,
      maxSize: MOST_BYTES,
      disposeAfter: (untilMs, id, reason) => {
        // Later another engine may have kept something by the same identifier.
        if (reason === 'evict' && performance.now() < untilMs) records.forget(id).catch(onError)
      },
    })
  }

  begin(id: string, request: string): Promise<Kept | undefined> {
    return this.#records.begin(id, request)
  }

  async keep(id: string, kept: Kept): Promise<void> {
    const size = entrySize(kept)
    if (size > MOST_BYTES) return this.#records.forget(id)
    await this.#records.keep(id, kept)
    this.#own.set(id, performance.now() + this.#lifetimeMs, { size })
  }

  forget(id: string): Promise<void> {
    return this.#records.forget(id)
  }
}
