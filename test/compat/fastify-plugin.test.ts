// run: typescript
// Whole apps with @fastify/rate-limit, on its own store and on ours, side by side.
import rateLimit, { type FastifyRateLimitStoreCtor, type RateLimitPluginOptions } from '@fastify/rate-limit'
import Fastify, { type FastifyInstance } from 'fastify'
import { MillraceStore } from 'millrace/compat/fastify-rate-limit'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type FakeDate, withFakeDate } from './fake-date.js'

/** What a client sees: the status, the headers of the limiter, the body. */
type Seen = [number, Record<string, unknown>, unknown]

type Routes = (app: FastifyInstance) => void
type Visit = (get: (path?: string, key?: string) => Promise<void>, date: FakeDate) => Promise<void>

const isLimiterHeader = (name: string): boolean => /ratelimit|retry-after/.test(name)

/** Runs the requests of `visit` against an app, and returns all that the client saw. */
function seenBy(
  store: FastifyRateLimitStoreCtor | undefined,
  options: RateLimitPluginOptions,
  routes: Routes,
  visit: Visit,
): Promise<Seen[]> {
  return withFakeDate(async (date) => {
    const app = Fastify()
    await app.register(rateLimit, { ...options, ...(store && { store }) })
    routes(app)
    const seen: Seen[] = []
    const get = async (path = '/', key = 'client'): Promise<void> => {
      const response = await app.inject({ url: path, headers: { key } })
      const headers = Object.entries(response.headers).filter(([name]) => isLimiterHeader(name))
      seen.push([response.statusCode, Object.fromEntries(headers), response.json()])
    }
    await visit(get, date)
    await app.close()
    return seen
  })
}

const oneRoute: Routes = (app) => {
  app.get('/', () => ({ hello: 'world' }))
}

/** Compares what clients see on the store of the original, and on ours in both ways to count. */
async function compare(options: RateLimitPluginOptions, routes: Routes, visit: Visit): Promise<number[]> {
  const expected = await seenBy(undefined, options, routes, visit)
  const Fixed = MillraceStore.with({ algorithm: 'fixed-window' })
  assert.equal(await seenBy(Fixed, options, routes, visit), expected)
  assert.equal(await seenBy(MillraceStore, options, routes, visit), expected)
  return expected.map(([status]) => status)
}

const plugin = suite('@fastify/rate-limit: the plugin on three stores')

const times = async (count: number, run: () => Promise<void>): Promise<void> => {
  for (let i = 0; i < count; i++) await run()
}

const burst: Visit = async (get, date) => {
  await times(2, get)
  date.tick(300)
  await times(2, get)
  date.tick(700)
  await times(4, get)
}

for (const enableDraftSpec of [false, true]) {
  plugin(`two of four requests pass, again after the window, draft headers: ${enableDraftSpec}`, async () => {
    const statuses = await compare({ max: 2, timeWindow: 1000, enableDraftSpec }, oneRoute, burst)
    assert.equal(statuses, [200, 200, 429, 429, 200, 200, 429, 429])
  })
}

plugin('a client that goes on is banned', async () => {
  const statuses = await compare({ max: 1, ban: 1, timeWindow: '1 second' }, oneRoute, burst)
  assert.equal(statuses, [200, 429, 403, 403, 200, 429, 403, 403])
})

plugin('continueExceeding and exponentialBackoff', async () => {
  for (const option of ['continueExceeding', 'exponentialBackoff']) {
    const options = { max: 1, timeWindow: 1000, [option]: true }
    const statuses = await compare(options, oneRoute, async (get, date) => {
      await get()
      for (const afterMs of [0, 600, 600, 999, 1000]) {
        date.tick(afterMs)
        await get()
      }
    })
    assert.equal(statuses, [200, 429, 429, 429, 429, 200])
  }
})

plugin('routes have limits of their own, or none', async () => {
  const statuses = await compare(
    { max: 2, timeWindow: 1000 },
    (app) => {
      oneRoute(app)
      app.get('/one', { config: { rateLimit: { max: 1, timeWindow: '2s' } } }, () => ({}))
      app.get('/free', { config: { rateLimit: false } }, () => ({}))
    },
    async (get, date) => {
      for (const path of ['/', '/', '/', '/one', '/one', '/free', '/free', '/free']) await get(path)
      date.tick(1000)
      for (const path of ['/', '/one']) await get(path)
      date.tick(1000)
      for (const path of ['/', '/one']) await get(path)
    },
  )
  assert.equal(statuses, [200, 200, 429, 200, 429, 200, 200, 200, 200, 429, 200, 200])
})

plugin('keys, limits and windows may come from functions; a key may be a number', async () => {
  const options: RateLimitPluginOptions = {
    keyGenerator: (request) => Number(request.headers.key),
    max: async (_, key) => (Number(key) === 1 ? 1 : 3),
    timeWindow: (_, key) => (Number(key) === 1 ? 500 : 1000),
  }
  const statuses = await compare(options, oneRoute, async (get, date) => {
    for (const key of ['1', '1', '2', '2', '2', '2']) await get('/', key)
    date.tick(500)
    for (const key of ['1', '2']) await get('/', key)
  })
  assert.equal(statuses, [200, 429, 200, 200, 200, 429, 200, 429])
})

plugin('groups of routes count together', async () => {
  const group = { config: { rateLimit: { max: 2, timeWindow: 1000, groupId: 'a' } } }
  await compare(
    { global: false },
    (app) => {
      app.get('/one', group, () => ({}))
      app.get('/two', group, () => ({}))
    },
    async (get) => {
      for (const path of ['/one', '/two', '/one', '/two']) await get(path)
    },
  )
})

plugin('createRateLimit counts, or reads with increment: false', async () => {
  const routes: Routes = (app) => {
    const check = app.createRateLimit({ max: 2, timeWindow: 1000 })
    app.get('/check', { config: { rateLimit: false } }, (request) => check(request))
    app.get('/peek', { config: { rateLimit: false } }, (request) => check(request, { increment: false }))
  }
  await compare({}, routes, async (get, date) => {
    for (const path of ['/peek', '/check', '/peek', '/check', '/check', '/peek']) await get(path)
    date.tick(1000)
    for (const path of ['/peek', '/check']) await get(path)
  })
})

plugin('an error of the store is an error of the request, unless skipOnError', async () => {
  for (const [skipOnError, status] of [
    [false, 500],
    [true, 200],
  ] as const) {
    const options = { max: 1, timeWindow: () => Number.NaN, skipOnError }
    const [seen] = await seenBy(MillraceStore, options, oneRoute, (get) => get())
    assert.is(seen?.[0], status)
  }
})

plugin.run()
