import type { Rendezvous } from 'millrace/internal'
import type { Kept, Records } from './records.js'

/**
 * Records over several servers, by the identifier. While the list of servers changes, one that has moved is at its former
 * server, too, where the engines with the list before look.
 */
export class ShardedRecords implements Records {
  readonly #now: Rendezvous<Records>
  readonly #before: Rendezvous<Records> | undefined

  constructor(now: Rendezvous<Records>, before: Rendezvous<Records> | undefined) {
    this.#now = now
    this.#before = before
  }

  /** First at the former server, as an engine with the list before does. */
  async begin(id: string, request: string): Promise<Kept | undefined> {
    for (const records of this.#of(id)) {
      const kept = await records.begin(id, request)
      if (kept !== undefined) return kept
    }
    return undefined
  }

  async keep(id: string, kept: Kept): Promise<void> {
    await Promise.all(this.#of(id).map((records) => records.keep(id, kept)))
  }

  async forget(id: string): Promise<void> {
    await Promise.all(this.#of(id).map((records) => records.forget(id)))
  }

  #of(id: string): readonly Records[] {
    const now = this.#now.find(id)
    const before = this.#before?.find(id)
    return before === undefined || before === now ? [now] : [before, now]
  }
}
