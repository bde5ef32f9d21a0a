import { setTimeout as sleep } from 'node:timers/promises'
import LocalStore from '@fastify/rate-limit/store/LocalStore.js'
import { MemoryStore, type Options } from 'express-rate-limit'
import { createLimiter } from 'millrace'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { type Benchmark, type Contender, figureOf } from '../benchmark.js'

const LIMIT = 100
const WINDOW_MS = 1_000

/** Whether one request of the one client is let through. */
type Ask = () => boolean | Promise<boolean>

/**
 * How many of a client's requests pass in a fifth of a window, around the moment at which a window counted by the clock
 * ends. One request opens the window; at nine tenths of it, and just after its end, the client asks for all it can get.
 */
function contender(name: string, make: () => Ask): Contender {
  return {
    name,
    async measure() {
      const ask = make()
      const startedAt = performance.now()
      await ask()
      let admitted = 0
      for (const part of [0.9, 1.05]) {
        await sleep(startedAt + part * WINDOW_MS - performance.now())
        for (let i = 0; i < 2 * LIMIT; i++) if (await ask()) admitted++
      }
      return { admitted }
    },
  }
}

const MILLRACE = 'Millrace'

export const edge: Benchmark = {
  title: `requests let through around the turn of a window, limit ${LIMIT} in ${WINDOW_MS / 1_000} s`,
  units: { admitted: 'admitted in a fifth of a window' },
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
      what: 'Millrace: admitted / the limit',
      unit: 'x',
      value: (round) => figureOf(round, MILLRACE, 'admitted') / LIMIT,
      atMost: 1,
    },
  ],
}
