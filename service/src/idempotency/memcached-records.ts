import type { Memcache } from 'memcache'
import { type Kept, PENDING_MS, type Records } from './records.js'

/** Longer ones would be taken for a date. */
const LONGEST_SECONDS = 30 * 86_400
const secondsIn = (ms: number): number => Math.min(Math.ceil(ms / 1_000), LONGEST_SECONDS)

/** Records on Memcached, which may evict them early: a retry is then charged again. */
export class MemcachedRecords implements Records {
  readonly #client: Memcache
  readonly #prefix: string
  readonly #lifetimeMs: number

  constructor(client: Memcache, prefix: string, lifetimeMs: number) {
    this.#client = client
    this.#prefix = prefix
    this.#lifetimeMs = lifetimeMs
  }

  async begin(id: string, request: string): Promise<Kept | undefined> {
    const name = this.#prefix + id
    const note = JSON.stringify({ request })
    if (await this.#client.add(name, note, secondsIn(PENDING_MS))) return undefined
    const kept = await this.#client.get(name)
    if (kept === undefined) throw new Error('Memcached keeps no value')
    return JSON.parse(kept)
  }

  async keep(id: string, kept: Kept): Promise<void> {
    await this.#client.set(this.#prefix + id, JSON.stringify(kept), secondsIn(this.#lifetimeMs))
  }

  async forget(id: string): Promise<void> {
    await this.#client.delete(this.#prefix + id)
  }
}
