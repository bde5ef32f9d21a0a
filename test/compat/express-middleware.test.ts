// run: typescript
// Whole apps with rateLimit of express-rate-limit, on its own store and on ours, side by side.
import { createServer } from 'node:http'
import express from 'express'
import { MemoryStore, type Options, rateLimit, type Store } from 'express-rate-limit'
import { MillraceStore } from 'millrace/compat/express-rate-limit'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listen, shut } from '../http/serve.js'
import { type FakeDate, withFakeDate } from './fake-date.js'

const WINDOW_MS = 60_000

/** What a client sees: the status, the headers of the limiter, the body. */
type Seen = [number, Record<string, string>, string]

const isLimiterHeader = (name: string): boolean => /ratelimit|retry-after/.test(name)

/** Runs the requests of `visit` against an app, and returns all that the client saw. */
async function seenBy(
  store: Store,
  options: Partial<Options>,
  visit: (get: (path?: string) => Promise<void>, date: FakeDate, store: Store) => Promise<void>,
): Promise<Seen[]> {
  return withFakeDate(async (date) => {
    const app = express()
    const limited = rateLimit({ windowMs: WINDOW_MS, limit: 2, validate: false, ...options, store })
    app.use(limited)
    app.get('/fail', (_, response) => void response.status(500).send('failed'))
    app.get('/key', async (_, response) => void response.json((await limited.getKey('::')) ?? null))
    app.get('/', (_, response) => void response.send('hello'))
    const server = createServer(app)
    const url = await listen(server)
    const seen: Seen[] = []
    const get = async (path = '/'): Promise<void> => {
      const response = await fetch(url + path)
      const headers = Object.fromEntries([...response.headers].filter(([name]) => isLimiterHeader(name)))
      seen.push([response.status, headers, await response.text()])
    }
    try {
      await visit(get, date, store)
    } finally {
      await shut(server)
      await store.shutdown?.()
    }
    return seen
  })
}

const middleware = suite('express-rate-limit: the middleware on three stores')

/** Compares what clients see on the store of the original, and on ours in both ways to count. */
async function compare(options: Partial<Options>, visit: Parameters<typeof seenBy>[2]): Promise<Seen[]> {
  const expected = await seenBy(new MemoryStore(), options, visit)
  assert.equal(await seenBy(new MillraceStore({ algorithm: 'fixed-window' }), options, visit), expected)
  assert.equal(await seenBy(new MillraceStore(), options, visit), expected)
  return expected
}

const times = async (count: number, run: () => Promise<void>): Promise<void> => {
  for (let i = 0; i < count; i++) await run()
}

for (const standardHeaders of [false, 'draft-6', 'draft-7', 'draft-8'] as const) {
  middleware(
    `two of four requests pass, again after the window, with the headers ${standardHeaders}`,
    async () => {
      const seen = await compare({ standardHeaders }, async (get, date) => {
        await get()
        date.tick(12_345)
        await times(3, get)
        date.tick(WINDOW_MS)
        await times(4, get)
      })
      assert.equal(
        seen.map(([status]) => status),
        [200, 200, 429, 429, 200, 200, 429, 429],
      )
    },
  )
}

middleware('with a windowMs below 1 every request is the first', async () => {
  for (const windowMs of [0.5, 0, -1]) {
    const seen = await compare({ windowMs, standardHeaders: 'draft-7' }, (get) => times(4, get))
    assert.equal(
      seen.map(([status]) => status),
      [200, 200, 200, 200],
    )
  }
})

middleware('failed requests do not count with skipFailedRequests', async () => {
  const seen = await compare({ skipFailedRequests: true }, async (get) => {
    for (const path of ['/fail', '/fail', '/fail', '/', '/', '/', '/']) {
      await get(path)
      await new Promise(setImmediate) // the store is told once the response has ended
    }
  })
  assert.equal(
    seen.map(([status]) => status),
    [500, 500, 500, 200, 200, 429, 429],
  )
})

middleware('successful requests do not count with skipSuccessfulRequests', async () => {
  const seen = await compare({ skipSuccessfulRequests: true }, async (get) => {
    for (const path of ['/', '/', '/', '/fail', '/fail', '/', '/fail']) {
      await get(path)
      await new Promise(setImmediate)
    }
  })
  assert.equal(
    seen.map(([status]) => status),
    [200, 200, 200, 500, 500, 429, 429],
  )
})

middleware('keys are counted apart, and resetKey gives one a new window', async () => {
  let client = 'one'
  const seen = await compare({ keyGenerator: () => client }, async (get, _, store) => {
    for (client of ['one', 'two']) await times(3, get)
    await store.resetKey('two')
    await times(3, get)
  })
  assert.equal(
    seen.map(([status]) => status),
    [200, 200, 429, 200, 200, 429, 200, 200, 429],
  )
})

middleware('a limit of 0 refuses all, and a limit may be a function', async () => {
  for (const limit of [0, () => 1, async () => 3]) {
    await compare({ limit }, async (get, date) => {
      await times(4, get)
      date.tick(WINDOW_MS)
      await times(4, get)
    })
  }
})

middleware.run()
