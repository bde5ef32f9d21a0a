// What only Fastify has: hooks, rules in the config of routes, groups of routes, the handler of unknown paths.
import Fastify, { type FastifyInstance } from 'fastify'
import { manualClock } from 'millrace'
import plugin, { type FastifyOptions, rateLimit } from 'millrace/fastify'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const KEY = ({ headers }: { headers: Record<string, unknown> }) => String(headers['x-key'] ?? 'nobody')

/** An app with the plugin: two requests a minute for each key. */
function appWith(options: Partial<FastifyOptions> = {}): FastifyInstance {
  const app = Fastify()
  app.register(rateLimit, { limit: 2, window: '1m', clock: manualClock(1e9), key: KEY, ...options })
  return app
}

const policyOf = async (app: FastifyInstance, url: string, method: 'GET' | 'POST' = 'GET') => {
  const { statusCode, headers } = await app.inject({ url, method })
  return [statusCode, headers['ratelimit-policy']]
}

test('the default export is the same plugin', () => {
  assert.is(plugin, rateLimit)
})

test('routes that were declared before and after the plugin, in any context, are limited together', async () => {
  const app = Fastify()
  app.get('/early', () => 'early')
  app.register(rateLimit, { limit: 2, window: '1m', clock: manualClock(1e9), key: KEY })
  app.register(async (inner) => {
    inner.get('/inner', () => 'inner')
  })
  const statuses = []
  for (const url of ['/early', '/inner', '/early']) statuses.push((await app.inject(url)).statusCode)
  assert.equal(statuses, [200, 200, 429])
  await app.close()
})

test('a path without a route is limited, also with a handler of its own', async () => {
  for (const handles of [false, true]) {
    const app = appWith()
    if (handles) app.setNotFoundHandler((_, reply) => void reply.code(404).send('nowhere'))
    const statuses = []
    for (const url of ['/a', '/b', '/c']) statuses.push((await app.inject(url)).statusCode)
    assert.equal(statuses, [404, 404, 429])
    await app.close()
  }
})

test('refusals count towards a ban for the window of a route that brings a longer one', async () => {
  const clock = manualClock(1e9)
  const app = appWith({ clock, ban: { after: 2, for: '2h' } })
  app.register(async (inner) => {
    inner.get('/slow', { config: { rateLimit: { limit: 1, window: '1h', name: 'hourly' } } }, () => 'slow')
  })
  const statuses = []
  for (let i = 0; i < 4; i++) {
    statuses.push((await app.inject('/slow')).statusCode)
    clock.advance(10 * 60_000)
  }
  assert.equal(statuses, [200, 429, 429, 403])
  await app.close()
})

test('config.rateLimit: rules of its own, false for none, {} for those of the plugin', async () => {
  const app = appWith()
  app.register(async (inner) => {
    const login = { config: { rateLimit: { limit: 1, window: '15m', name: 'logins' } } }
    inner.post('/login', login, () => 'welcome')
    inner.get('/health', { config: { rateLimit: false } }, () => 'well')
    inner.get('/same', { config: { rateLimit: {} } }, () => 'same')
  })
  assert.equal(await policyOf(app, '/login', 'POST'), [200, '"logins";q=1;w=900'])
  assert.equal(await policyOf(app, '/login', 'POST'), [429, '"logins";q=1;w=900'])
  for (let i = 0; i < 3; i++) assert.equal(await policyOf(app, '/health'), [200, undefined])
  for (const status of [200, 200, 429]) {
    assert.equal(await policyOf(app, '/same'), [status, '"default";q=2;w=60'])
  }
  await app.close()
})

test('with global: false only the routes with config.rateLimit are limited', async () => {
  const app = appWith({ global: false })
  app.get('/free', () => 'free')
  app.get('/same', { config: { rateLimit: {} } }, () => 'same')
  assert.equal(await policyOf(app, '/free'), [200, undefined])
  assert.equal(await policyOf(app, '/nowhere'), [404, undefined])
  assert.equal(await policyOf(app, '/same'), [200, '"default";q=2;w=60'])
  await app.close()
})

test('routes with one groupId count together', async () => {
  const app = appWith()
  const config = { rateLimit: { limit: 2, window: '1h', groupId: 'search' } }
  app.get('/a', { config }, () => 'a')
  app.get('/b', { config: { rateLimit: { groupId: 'search' } } }, () => 'b')
  app.get('/c', { config: { rateLimit: { limit: 2, window: '1h' } } }, () => 'c')
  const statuses = []
  for (const url of ['/a', '/b', '/a', '/b', '/c']) statuses.push((await app.inject(url)).statusCode)
  assert.equal(statuses, [200, 200, 429, 429, 200])
  await app.close()
})

test('a wrong rule of a route fails when the route is declared', async () => {
  const app = appWith()
  app.register(async (inner) => {
    inner.get('/a', { config: { rateLimit: { limit: 1, window: '1 week' } } }, () => 'a')
  })
  try {
    await app.ready()
    assert.unreachable()
  } catch (error) {
    assert.match((error as Error).message, /^window: expected/)
  }
  await app.close()
})

test('unknown and wrong options of the plugin fail at its registration', async () => {
  for (const [options, message] of [
    [{ hook: 'onSend' }, /^hook: expected/],
    [{ global: 'yes' }, /^global: expected/],
    [{ max: 5 }, /^options: expected only/],
    [{ limit: undefined, window: undefined }, /^limit: expected/],
  ] as const) {
    const app = appWith(options as unknown as FastifyOptions)
    try {
      await app.ready()
      assert.unreachable(String(message))
    } catch (error) {
      assert.match((error as Error).message, message)
    }
    await app.close()
  }
})

for (const hook of ['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const) {
  test(`limits in the hook ${hook}`, async () => {
    const key = (request: { body?: unknown; headers: Record<string, unknown> }) =>
      hook === 'preHandler' ? (request.body as { user: string }).user : KEY(request)
    const app = appWith({ hook, limit: 1, key: key as never })
    app.post('/', ({ rateLimit }) => ({ remaining: rateLimit?.remaining }))
    const post = (user: string) =>
      app.inject({ method: 'POST', url: '/', payload: { user }, headers: { 'x-key': user } })
    assert.equal((await post('alice')).json(), { remaining: 0 })
    assert.is((await post('alice')).statusCode, 429)
    assert.is((await post('bob')).statusCode, 200)
    await app.close()
  })
}

test.run()
