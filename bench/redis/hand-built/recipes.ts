// Limiters on Redis as people build them by hand, each with commands only. All are for one connection, which makes
// one decision at a time.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { HOST } from '../../../test/redis/ports.js'

export interface Bound {
  readonly limit: number
  readonly windowMs: number
}

export interface Outcome {
  readonly allowed: boolean
  /** How often the caller has begun, until it had a decision. */
  readonly tries: number
  /** When the unit was counted, in milliseconds since 1970. */
  readonly atMs: number
}

/** A caller with a connection of its own. */
export interface Caller {
  decide(key: string): Promise<Outcome>
  /** Ends the connection in a decision, at the step where that does most harm, as when the process dies there. */
  die(key: string): Promise<void>
  close(): Promise<void>
}

export type Recipe = (port: number, bound: Bound) => Promise<Caller>

type Decide = (client: Redis, key: string, bound: Bound) => Promise<Outcome>

function recipe(decide: Decide, die: (client: Redis, key: string, bound: Bound) => Promise<unknown>): Recipe {
  return async (port, bound) => {
    const client = new Redis(port, HOST, { lazyConnect: true })
    await client.connect()
    return {
      decide: (key) => decide(client, key, bound),
      async die(key) {
        await die(client, key, bound)
        client.disconnect()
      },
      close: async () => client.disconnect(),
    }
  }
}

const outcome = (allowed: boolean, tries = 1, atMs = Date.now()): Outcome => ({ allowed, tries, atMs })

/** `INCR`, and `PEXPIRE` after the first: a window from the first request on. */
export const incrAndExpire = recipe(
  async (client, key, { limit, windowMs }) => {
    const count = await client.incr(key)
    const counted = outcome(count <= limit)
    if (count === 1) await client.pexpire(key, windowMs)
    return counted
  },
  (client, key) => client.incr(key), // and no PEXPIRE
)

/** The same, but it reads the count first, so that refused requests don't count. */
export const readThenIncrement = recipe(
  async (client, key, { limit, windowMs }) => {
    const count = Number(await client.get(key))
    if (count >= limit) return outcome(false)
    const isFirst = (await client.incr(key)) === 1
    const counted = outcome(true)
    if (isFirst) await client.pexpire(key, windowMs)
    return counted
  },
  (client, key) => client.incr(key),
)

/** Longer than a decision takes; a process that dies blocks the others for so long. */
const LOCK_MS = 200
const RETRY_MS = 2
const UNLOCK = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end`

/** A lock (`SET NX PX`) around `GET` and `SET` of a count; the lock's owner deletes it. */
export const lockAroundGetAndSet = recipe(
  async (client, key, { limit, windowMs }) => {
    const token = randomUUID()
    let tries = 1
    for (; (await client.set(`${key}:lock`, token, 'PX', LOCK_MS, 'NX')) !== 'OK'; tries++)
      await sleep(RETRY_MS * (0.5 + Math.random()))
    const count = Number(await client.get(key))
    if (count === 0) await client.set(key, 1, 'PX', windowMs)
    else if (count < limit) await client.set(key, count + 1, 'KEEPTTL')
    const decided = outcome(count < limit, tries)
    await client.eval(UNLOCK, 1, `${key}:lock`, token)
    return decided
  },
  (client, key) => client.set(`${key}:lock`, randomUUID(), 'PX', LOCK_MS, 'NX'),
)

/** A sorted set of the times of admissions: `WATCH`, count, then `MULTI`; again if another caller was first. */
export const watchAndMulti = recipe(
  async (client, key, { limit, windowMs }) => {
    for (let tries = 1; ; tries++) {
      await client.watch(key)
      const nowMs = Date.now()
      const count = await client.zcount(key, `(${nowMs - windowMs}`, '+inf')
      if (count >= limit) {
        await client.unwatch()
        return outcome(false, tries)
      }
      const done = await client
        .multi()
        .zremrangebyscore(key, '-inf', nowMs - windowMs)
        .zadd(key, nowMs, randomUUID())
        .pexpire(key, windowMs)
        .exec()
      if (done !== null) return outcome(true, tries, nowMs)
    }
  },
  async (client, key) => {
    await client.watch(key)
    await client.call('MULTI')
    await client.zadd(key, Date.now(), randomUUID()) // queued
  },
)

/** The transaction counts a request in the window of the caller's clock, and reads the count of the window before. */
function count(client: Redis, key: string, window: number, windowMs: number) {
  return client
    .multi()
    .incr(`${key}:${window}`)
    .pexpire(`${key}:${window}`, 2 * windowMs)
    .get(`${key}:${window - 1}`)
    .exec()
}

/**
 * Two counters of fixed windows, and an estimate: all of this window, and of the one before the part that is in the last
 * `windowMs`, as if its requests had come evenly. Increments first, and takes back what is over.
 */
export const twoCounters = recipe(
  async (client, key, { limit, windowMs }) => {
    const nowMs = Date.now()
    const window = Math.floor(nowMs / windowMs)
    const replies = await count(client, key, window, windowMs)
    const [current, , before] = replies!.map(([, reply]) => Number(reply))
    const passed = nowMs / windowMs - window
    if (current! + before! * (1 - passed) <= limit) return outcome(true, 1, nowMs)
    await client.decr(`${key}:${window}`)
    return outcome(false)
  },
  (client, key, { windowMs }) => count(client, key, Math.floor(Date.now() / windowMs), windowMs),
)
