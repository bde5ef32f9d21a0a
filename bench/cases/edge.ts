import { setTimeout as sleep } from 'node:timers/promises'
import LocalStore from '@fastify/rate-limit/store/LocalStore.js'
import { MemoryStore, type Options } from 'express-rate-limit'
import { createLimiter } from 'millrace'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { type Benchmark, type Contender, figureOf } from '../benchmark.js'

const LIMIT = 100
const WINDOW_MS = 1_000

/** Returns whether the client's next request is admitted. */
type Decide = () => boolean | Promise<boolean>

/**
 * Counts the requests of one client that are admitted within a fifth of a window, around the end of a fixed
 * window. One request opens the window. At nine tenths of it, and again just after its end, the client sends
 * twice its limit.
 */
function contender(name: string, make: () => Decide): Contender {
  return {
    name,
    async measure() {
      const decide = make()
      const startedAt = performance.now()
      await decide()
      let admitted = 0
      for (const part of [0.9, 1.05]) {
        await sleep(startedAt + part * WINDOW_MS - performance.now())
        for (let i = 0; i < 2 * LIMIT; i++) if (await decide()) admitted++
      }
      return { admitted }
    },
  }
}

const MILLRACE = 'Millrace'

export const edge: Benchmark = {
  title: `requests admitted around a window boundary, limit ${LIMIT} per ${WINDOW_MS / 1_000} s`,
  units: { admitted: 'admitted within a fifth of a window' },
  rounds: { full: 3, quick: 1 }, // a count, not a time
  contenders: [
    contender(MILLRACE, () => {
      const limiter = createLimiter({ limit: LIMIT, window: WINDOW_MS })
      return () => limiter.check('client').allowed
    }),
    contender('rate-limiter-flexible', () => {
      const limiter = new RateLimiterMemory({ points: LIMIT, duration: WINDOW_MS / 1_000 })
      return () =>
        limiter.consume('client').then(
          () => true,
          () => false,
        )
    }),
    contender("express-rate-limit's store", () => {
      const store = new MemoryStore()
      store.init({ windowMs: WINDOW_MS } as Options)
      return async () => (await store.increment('client')).totalHits <= LIMIT
    }),
    contender("@fastify/rate-limit's store", () => {
      const store = new LocalStore(false, false)
      return () => {
        let isAllowed = false
        store.incr('client', (_error, { current }) => (isAllowed = current <= LIMIT), WINDOW_MS, LIMIT)
        return isAllowed
      }
    }),
  ],
  goals: [
    {
      label: 'Millrace: admitted / the limit',
      unit: 'x',
      value: (round) => figureOf(round, MILLRACE, 'admitted') / LIMIT,
      atMost: 1,
    },
  ],
}
