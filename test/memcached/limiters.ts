// Limiters on one Memcached, and what is on the server behind their backs.
import { createNode, Memcache, type MemcacheNode } from 'memcache'
import {
  createMemcachedLimiter,
  type MemcachedLimiter,
  type MemcachedLimiterOptions,
  type MemcachedOptions,
  type MemcachedRule,
  type MemcachedRulesOptions,
} from 'millrace/memcached'
import { HOST } from '../redis/ports.js'
import type { Server } from '../redis/process.js'

/** The options of a limiter. It has a client and a prefix of its own unless they name others. */
type Options = Partial<MemcachedOptions> & (MemcachedRule | Pick<MemcachedRulesOptions, 'rules'>)

/** A Monday, at the beginning of each window of up to a day. */
export const START_MS = 20_000 * 86_400_000

/** A client that never connects by itself. */
export const clientOf = (...ports: readonly number[]): Memcache =>
  new Memcache({ nodes: ports.map((port) => `${HOST}:${port}`) })

/** Ends servers. Memcached takes a second to stop, unless it is killed. */
export async function end(...servers: readonly Server[]): Promise<void> {
  for (const server of servers) {
    await server.kill()
    await server.stop()
  }
}

export class Limiters {
  readonly port: number
  readonly #all: MemcachedLimiter[] = []
  #wire: MemcacheNode | undefined
  #prefixes = 0
  /** The clock of limiters with `isTimed`. */
  nowMs = START_MS

  constructor(port: number) {
    this.port = port
  }

  /** A limiter whose counts no other has, by the clock of the test. */
  timed(options: Options): MemcachedLimiter {
    return this.make({ ...options, testTime: () => this.nowMs })
  }

  /** A limiter whose counts no other has, by the clock of this process. It has a minute for each call. */
  make(options: Options): MemcachedLimiter {
    const own = {
      client: clientOf(this.port),
      prefix: `test ${++this.#prefixes}`,
      deadline: '1m',
      ...options,
    }
    const limiter = createMemcachedLimiter(own as MemcachedLimiterOptions)
    this.#all.push(limiter)
    return limiter
  }

  /** Sends a command whose reply is one line. */
  async tell(command: string): Promise<unknown> {
    return (await this.#node()).command(command)
  }

  async stats(): Promise<Readonly<Record<string, string>>> {
    return (await this.#node()).command('stats', { isStats: true })
  }

  async value(name: string): Promise<string | undefined> {
    const values = await (await this.#node()).command(`get ${name}`, { isMultiline: true })
    return (values as string[] | undefined)?.[0]
  }

  async close(): Promise<void> {
    for (const limiter of this.#all) await limiter.close()
    await this.#wire?.disconnect()
    this.#wire = undefined
  }

  async #node(): Promise<MemcacheNode> {
    if (this.#wire?.isConnected() !== true) {
      this.#wire = createNode(HOST, this.port)
      await this.#wire.connect()
    }
    return this.#wire
  }
}
