/**
 * The limiters that Millrace is compared with, each set up as its documentation says. They admit everything:
 * no case sends a key more than 1,000,000 units per minute, and each timed loop checks that nothing was
 * refused.
 */
import LocalStore from '@fastify/rate-limit/store/LocalStore.js'
import { type ClientRateLimitInfo, MemoryStore, type Options } from 'express-rate-limit'
import { RateLimiter } from 'limiter'
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible'
import type { AsyncDecide, Decide } from './timing.js'

export const LIMIT = 1_000_000
export const WINDOW_MS = 60_000

/**
 * The baseline: a fixed-window limiter of ten lines on a bare Map, with one counter per key and the wall
 * clock. It admits twice the limit around a window boundary, never forgets a key and serves one thread.
 */
export function bareMap(): Decide<string> {
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

/** `RateLimiterMemory` of https://github.com/animir/node-rate-limiter-flexible. It rejects for a refusal. */
export function rateLimiterFlexible(): AsyncDecide<string, RateLimiterRes> {
  const limiter = new RateLimiterMemory({ points: LIMIT, duration: WINDOW_MS / 1_000 })
  return { decide: (key) => limiter.consume(key), isAllowed: (answer) => answer.remainingPoints >= 0 }
}

/**
 * The default store of https://github.com/express-rate-limit/express-rate-limit, used as its middleware does.
 */
export function expressRateLimitStore(): AsyncDecide<string, ClientRateLimitInfo> {
  const store = new MemoryStore()
  store.init({ windowMs: WINDOW_MS } as Options)
  return { decide: (key) => store.increment(key), isAllowed: (answer) => answer.totalHits <= LIMIT }
}

/**
 * The default store of https://github.com/fastify/fastify-rate-limit, used as its plugin does, but with room
 * for all keys in use. Its default is 5,000 keys; it forgets the counts of others.
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

/**
 * One token bucket of https://github.com/jhurliman/node-rate-limiter per key, in a Map as its users keep
 * them.
 */
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
