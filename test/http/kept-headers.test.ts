// run: full
// Headers of a response that frameworks would drop: those of the limit at an error, and those of other
// middleware at a refusal.
import { Hono } from 'hono'
import Koa from 'koa'
import { rateLimit as forHono } from 'millrace/hono'
import { rateLimit as forKoa } from 'millrace/koa'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const KEY = () => 'key'

test('Koa: a handler that throws answers with the headers of the limit, and with its own', async () => {
  for (const [thrown, status] of [
    [Object.assign(new Error('no'), { status: 401, expose: true, headers: { 'X-Own': 'own' } }), 401],
    [new TypeError('broken'), 500],
  ] as const) {
    const app = new Koa()
    app.silent = true
    app.use(forKoa({ limit: 3, window: '1m', key: KEY, exposeHeaders: true }))
    app.use(() => {
      throw thrown
    })
    const server = app.listen(0)
    const { port } = server.address() as { port: number }
    const response = await fetch(`http://127.0.0.1:${port}/`)
    assert.is(response.status, status)
    assert.is(response.headers.get('ratelimit-policy'), '"default";q=3;w=60')
    assert.match(response.headers.get('access-control-expose-headers')!, 'RateLimit')
    assert.is(response.headers.get('x-own'), status === 401 ? 'own' : null)
    server.closeAllConnections()
    server.close()
  }
})

test('Hono: a refusal has the headers that earlier middleware has set', async () => {
  const app = new Hono()
  app.use(async (context, next) => {
    context.header('X-Request-Id', 'one')
    await next()
  })
  app.use(forHono({ limit: 1, window: '1m', key: KEY }))
  app.get('/', (context) => context.text('hello'))
  for (const status of [200, 429]) {
    const response = await app.request('/')
    assert.is(response.status, status)
    assert.is(response.headers.get('x-request-id'), 'one')
    assert.match(response.headers.get('content-type')!, status === 200 ? 'text/plain' : 'problem+json')
  }
  const head = await app.request('/', { method: 'HEAD' })
  assert.equal([head.status, await head.text()], [429, ''])
})

test.run()
