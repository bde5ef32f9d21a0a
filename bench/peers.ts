/**
 * What Millrace is measured against, each made as its own documentation makes it. All admit whatever comes: 1,000,000
 * units a minute are more than any case asks of one key, and each timed loop checks that none was refused.
 */
import LocalStore from '@fastify/rate-limit/store/LocalStore.js'
import { type ClientRateLimitInfo, MemoryStore, type Options } from 'express-rate-limit'
import { RateLimiter } from 'limiter'
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'
import type { AsyncDecide, Decide } from './timing.js'

export const LIMIT = 1_000_000
export const WINDOW_MS = 60_000

/**
 * The floor: what a careful person writes by hand in ten lines. One counter a key in a Map, a fixed window (so twice
 * the limit at its boundary), the wall clock, never a key forgotten, one thread.
 */
export function mapFloor(): Decide<string> {
  const counters = new Map<string, { count: number; resetAtMs: number }>()
  return (key) => {
    const nowMs = Date.now()
    const counter = counters.get(key)
    if (counter === undefined) {
      counters.set(key, { count: 1, resetAtMs: nowMs + WINDOW_MS })
      return true
    }
    if (nowMs >= counter.resetAtMs) {
      counter.count = 0
      counter.resetAtMs = nowMs + WINDOW_MS
    }
    if (counter.count >= LIMIT) return false
    counter.count++
    return true
  }
}

/** `RateLimiterMemory` of https://github.com/animir/node-rate-limiter-flexible; a refusal would be a rejection. */
export function rateLimiterFlexible(): AsyncDecide<string, RateLimiterRes> {
  const limiter = new RateLimiterMemory({ points: LIMIT, duration: WINDOW_MS / 1_000 })
  return { decide: (key) => limiter.consume(key), isAllowed: (answer) => answer.remainingPoints >= 0 }
}

/** The store that https://github.com/express-rate-limit/express-rate-limit uses by default, as its middleware does. */
export function expressRateLimitStore(): AsyncDecide<string, ClientRateLimitInfo> {
  const store = new MemoryStore()
  store.init({ windowMs: WINDOW_MS } as Options)
  return { decide: (key) => store.increment(key), isAllowed: (answer) => answer.totalHits <= LIMIT }
}

/**
 * The store that https://github.com/fastify/fastify-rate-limit uses by default, as its plugin does, but keeping as many
 * keys as are at work: it keeps 5,000 unless told, and forgets what the others had used.
 */
export function fastifyLocalStore(maxKeys: number): Decide<string> {
  const store = new LocalStore(false, false, maxKeys)
  let isAllowed = false
  const answer = (_error: Error | null, { current }: { current: number }): void => {
    isAllowed = current <= LIMIT
  }
  return (key) => {
    store.incr(key, answer, WINDOW_MS, LIMIT)
    return isAllowed
  }
}

/** A token bucket of https://github.com/jhurliman/node-rate-limiter for each key, kept in a Map as its users do. */
export function tokenBuckets(): Decide<string> {
  const buckets = new Map<string, RateLimiter>()
  return (key) => {
    let bucket = buckets.get(key)
    if (bucket === undefined) {
      bucket = new RateLimiter({ tokensPerInterval: LIMIT, interval: WINDOW_MS })
      buckets.set(key, bucket)
    }
    return bucket.tryRemoveTokens(1)
  }
}
