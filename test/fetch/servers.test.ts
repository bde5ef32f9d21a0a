// run: full, modules
// Real servers with limits of their own, and calls that take a random time to arrive. Each server's log says what
// it saw, and what it refused.
import express from 'express'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import { createLimiter, type Limiter } from 'millrace'
import { rateLimit } from 'millrace/express'
import { limitedFetch } from 'millrace/fetch'
import { limitInterceptor } from 'millrace/undici'
import { Agent, request, fetch as undiciFetch } from 'undici'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { monotonicClock } from '#millrace/core/clock.js'
import { mostInAnyWindow, times, withServer } from './support.js'

const LIMIT = 8
const WINDOW_MS = 120
/** The counts of a server are in buckets: it may count a call for this much longer. */
const GRANULARITY_MS = WINDOW_MS / 60
const CALLS = 32
/** The longest time that a call takes to arrive, and its answer to return. */
const MOST_DELAY_MS = 60

const delayed = (next: () => void): void => void setTimeout(next, Math.random() * MOST_DELAY_MS)

/** The servers: with a sliding window, and with fixed ones. */
const SERVERS = {
  millrace: () => rateLimit({ limit: LIMIT, window: WINDOW_MS, granularity: GRANULARITY_MS }),
  'express-rate-limit': () =>
    expressRateLimit({ limit: LIMIT, windowMs: WINDOW_MS, standardHeaders: false, legacyHeaders: false }),
}

/** A client of each kind: calls a URL, and resolves with the status. */
const CLIENTS = {
  limitedFetch: (limiter: Limiter) => {
    const call = limitedFetch(fetch, { limiter, retries: 0 })
    return async (url: string) => {
      const response = await call(url)
      await response.text()
      return response.status
    }
  },
  'limitedFetch with the fetch of undici': (limiter: Limiter) => {
    const call = limitedFetch(undiciFetch, { limiter, retries: 0 })
    return async (url: string) => {
      const response = await call(url)
      await response.text()
      return response.status
    }
  },
  'an Agent with limitInterceptor': (limiter: Limiter) => {
    const dispatcher = new Agent().compose(limitInterceptor({ limiter, retries: 0 }))
    return async (url: string) => {
      const { statusCode, body } = await request(url, { dispatcher })
      await body.dump()
      return statusCode
    }
  },
}

for (const [server, limited] of Object.entries(SERVERS)) {
  for (const [client, clientOf] of Object.entries(CLIENTS)) {
    test(`${client} never exceeds the limit of ${server}, which refuses nothing`, async () => {
      const arrivalsMs: number[] = []
      const statuses: number[] = []
      const app = express()
      app.use((_request, response, next) => {
        response.on('finish', () => statuses.push(response.statusCode))
        delayed(() => {
          arrivalsMs.push(monotonicClock.now())
          next()
        })
      })
      app.use(limited())
      app.get('/', (_request, response) => delayed(() => response.send('hello\n')))
      await withServer(app, async (url) => {
        // No unit of the client may leave its window before the server's does, which has its own buckets.
        const limiter = createLimiter({ limit: LIMIT, window: WINDOW_MS + GRANULARITY_MS })
        const call = clientOf(limiter)
        const seen = await times(CALLS, () => call(url))
        assert.equal(new Set(seen), new Set([200]))
        await limiter.close()
      })
      assert.is(arrivalsMs.length, CALLS)
      assert.is(statuses.filter((status) => status !== 200).length, 0)
      const most = mostInAnyWindow(arrivalsMs, WINDOW_MS)
      assert.ok(most <= LIMIT, `${most} in one window`)
    })
  }
}

test('a client with a larger limit is never refused, because each form of the headers tells it when to pause', async () => {
  const forms = [
    { standardHeaders: 'draft-6', legacyHeaders: false },
    { standardHeaders: 'draft-7', legacyHeaders: false },
    { standardHeaders: 'draft-8', legacyHeaders: false },
    { standardHeaders: false, legacyHeaders: true },
  ] as const
  await times(forms.length, (i) => {
    const app = express()
    app.use(expressRateLimit({ limit: 3, windowMs: 1_000, ...forms[i]! }))
    app.get('/', (_request, response) => void response.send('hello\n'))
    return withServer(app, async (url) => {
      const limiter = createLimiter({ limit: 100, window: '1s' })
      const call = CLIENTS[i % 2 === 0 ? 'limitedFetch' : 'an Agent with limitInterceptor'](limiter)
      const statuses: number[] = []
      for (let n = 0; n < 8; n++) statuses.push(await call(url))
      assert.equal(statuses, Array(8).fill(200), JSON.stringify(forms[i]))
      await limiter.close()
    })
  })
})

test('one limiter holds for fetch and dispatchers together, and each host has a limit of its own', async () => {
  const arrivalsMs: Record<string, number[]> = { a: [], b: [] }
  const serverOf = (name: string) =>
    express().get('/', (_request, response) =>
      delayed(() => {
        arrivalsMs[name]!.push(monotonicClock.now())
        response.send('hello\n')
      }),
    )
  await withServer(serverOf('a'), (a) =>
    withServer(serverOf('b'), async (b) => {
      const limiter = createLimiter({ limit: LIMIT, window: WINDOW_MS })
      const calls = [CLIENTS.limitedFetch(limiter), CLIENTS['an Agent with limitInterceptor'](limiter)]
      await times(2 * CALLS, (i) => calls[i % 2]!(i % 4 < 2 ? a : b))
      await limiter.close()
    }),
  )
  for (const log of Object.values(arrivalsMs)) {
    assert.is(log.length, CALLS)
    assert.ok(mostInAnyWindow(log, WINDOW_MS) <= LIMIT)
  }
})

test('the judge finds what a client without a limit does', async () => {
  const arrivalsMs: number[] = []
  await withServer(
    express().get('/', (_request, response) => {
      arrivalsMs.push(monotonicClock.now())
      response.send('hello\n')
    }),
    async (url) => void (await times(CALLS, (_) => fetch(url).then((response) => response.text()))),
  )
  assert.ok(mostInAnyWindow(arrivalsMs, 60_000) === CALLS)
})

test.run()
