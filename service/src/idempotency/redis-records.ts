import type { Redis } from 'ioredis'
import { inTime } from '../stores/in-time.js'
import { type Kept, PENDING_MS, type Records } from './records.js'

/** Records on the Redis that has the counts: values with an expiry. */
export class RedisRecords implements Records {
  readonly #client: Redis
  readonly #prefix: string
  readonly #lifetimeMs: number
  readonly #deadlineMs: number

  constructor(client: Redis, prefix: string, lifetimeMs: number, deadlineMs: number) {
    this.#client = client
    this.#prefix = prefix
    this.#lifetimeMs = lifetimeMs
    this.#deadlineMs = deadlineMs
  }

  async begin(id: string, request: string): Promise<Kept | undefined> {
    const name = this.#prefix + id
    const isNew = await this.#ask(this.#client.set(name, JSON.stringify({ request }), 'PX', PENDING_MS, 'NX'))
    if (isNew !== null) return undefined
    const kept = await this.#ask(this.#client.get(name))
    return kept === null ? this.begin(id, request) : JSON.parse(kept) // it has expired in between
  }

  async keep(id: string, kept: Kept): Promise<void> {
    await this.#ask(this.#client.set(this.#prefix + id, JSON.stringify(kept), 'PX', this.#lifetimeMs))
  }

  async forget(id: string): Promise<void> {
    await this.#ask(this.#client.del(this.#prefix + id))
  }

  #ask<T>(reply: Promise<T>): Promise<T> {
    return inTime(this.#deadlineMs, reply)
  }
}
