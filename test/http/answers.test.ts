// run: full

/** What the frameworks differ in: handlers that answer in their own way, and requests without a server. */
import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import Fastify from 'fastify'
import { Hono } from 'hono'
import { cors } from 'hono/cors'
import Koa from 'koa'
import { manualClock } from 'millrace'
import { rateLimit as limitFastify } from 'millrace/fastify'
import { rateLimit as limitHono } from 'millrace/hono'
import { rateLimit as limitNode, type NodeOptions } from 'millrace/http'
import { rateLimit as limitKoa } from 'millrace/koa'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { until } from '../limiter/support.js'
import { type Client, http1Client } from './driver.js'
import { http2Client } from './http2-client.js'
import { listen, shut } from './serve.js'

const base = () => ({ limit: 1, window: '1m', clock: manualClock(1e9) }) as const
const GET = { method: 'GET', headers: {} }

const servers: [
  string,
  Client,
  (listener: Parameters<typeof createServer>[1]) => ReturnType<typeof createServer>,
][] = [
  ['HTTP/1.1', http1Client, (listener) => createServer(listener)],
  // The interface is compatible, its type is not.
  ['HTTP/2', http2Client, (listener) => createHttp2Server(listener as never) as never],
]

for (const [name, client, create] of servers) {
  /** Serves 'hello' on node. The first request is admitted, the others are refused. */
  const serving = async (options: NodeOptions, use: (url: string) => Promise<void>) => {
    const limited = limitNode(options)
    const server = create((request, response) => limited(request, response, () => response.end('hello')))
    const url = await listen(server)
    try {
      await client.fetch(url, GET)
      await use(url)
    } finally {
      await shut(server)
      await limited.close()
    }
  }

  test(`${name}: a handler that fails within its answer: the client does not take it for whole`, async () => {
    for (const length of [undefined, 100]) {
      const errors: unknown[] = []
      const handler: NodeOptions['handler'] = (_, response) => {
        if (length !== undefined) response.setHeader('Content-Length', length)
        response.statusCode = 420
        ;(response as { write(text: string): void }).write('part')
        throw new Error('failed')
      }
      const onError = (error: unknown) => {
        errors.push(error)
        return 'pass' as const
      }
      await serving({ ...base(), handler, onError }, async (url) => {
        const body = client.fetch(url, GET).then((response) => response.text())
        assert.is(
          await body.then(
            () => 'whole',
            () => 'broken',
          ),
          'broken',
        )
      })
      assert.is(errors.length, 1)
    }
  })

  test(`${name}: a handler that fails after its answer: the answer is whole`, async () => {
    const handler: NodeOptions['handler'] = async (_, response) => {
      response.end('slowly')
      throw new Error('failed')
    }
    await serving({ ...base(), handler, onError: () => 'fail' }, async (url) => {
      assert.is(await (await client.fetch(url, GET)).text(), 'slowly')
    })
  })
}

test('Fastify: a handler may return the reply, which is no promise', async () => {
  for (const later of [false, true]) {
    const errors: unknown[] = []
    const app = Fastify()
    app.register(limitFastify, {
      ...base(),
      handler: (_, reply) => {
        const sent = reply.code(420).send('slowly')
        return later ? Promise.resolve().then(() => sent) : sent
      },
      onError(error) {
        errors.push(error)
        return 'fail'
      },
    })
    app.get('/', () => 'hello')
    await app.inject('/')
    const { statusCode, body } = await app.inject('/')
    assert.equal([statusCode, body, errors], [420, 'slowly', []])
    await app.close()
  }
})

test('Koa and Hono: the log of a request whose connection closed during its delay has status 499', async () => {
  const statuses: number[] = []
  const options = { limit: 9, window: '1m', delay: { after: 0, ms: '1h', max: '1h' } } as const
  let arrived = 0
  const key = () => `${arrived++}`
  const koa = new Koa()
  koa.use(async (context, next) => {
    await next()
    statuses.push(context.status)
  })
  koa.use(limitKoa({ ...options, key }))
  const { getRequestListener } = await import('@hono/node-server')
  const hono = new Hono()
  hono.use(async (context, next) => {
    await next()
    statuses.push(context.res.status)
  })
  hono.use(limitHono({ ...options, key }))
  for (const listener of [koa.callback(), getRequestListener(hono.fetch)]) {
    const server = createServer(listener)
    const close = http1Client.open(await listen(server), {})
    await until(() => arrived > statuses.length, 'the request')
    await close()
    await until(() => arrived === statuses.length, 'the end of the request')
    await shut(server)
  }
  assert.equal(statuses, [499, 499])
})

test('Hono: a handler that returns nothing: 503', async () => {
  const errors: unknown[] = []
  const onError = (error: unknown) => {
    errors.push(error)
    return 'fail' as const
  }
  const options = { ...base(), key: () => 'all', handler: () => undefined as never, onError }
  const app = new Hono().use(limitHono(options)).get('/', (context) => context.text('hello'))
  const limited = limitHono(options, () => new Response('hello'))
  for (const fetch of [() => app.request('/'), () => limited(new Request('http://host/'))]) {
    assert.is((await fetch()).status, 200)
    assert.is((await fetch()).status, 503)
  }
  assert.match(String(errors), /expected a Response.*expected a Response/)
})

test('Hono: an option address that throws: 503', async () => {
  const address = () => {
    throw new Error('no address')
  }
  const options = { ...base(), address, onError: () => 'fail' as const }
  const app = new Hono().use(limitHono(options))
  assert.is((await app.request('/')).status, 503)
  assert.is((await limitHono(options, () => new Response('hello'))(new Request('http://host/'))).status, 503)
})

test('Hono without a server: no address is 503, unless the option gives one', async () => {
  const options = { ...base(), limit: 1, onError: () => 'fail' as const }
  for (const [own, statuses] of [
    [{}, [503, 503]],
    [{ address: () => '127.0.0.1' }, [200, 429]],
  ] as const) {
    const app = new Hono().use(limitHono({ ...options, ...own })).get('/', (context) => context.text('hello'))
    assert.equal([(await app.request('/')).status, (await app.request('/')).status], statuses)
  }
})

test('Hono without a server: countIf holds beside delay, in each limiter of a chain', async () => {
  const counted: string[] = []
  const options = (name: string) => ({
    ...base(),
    limit: 5,
    key: () => 'all',
    delay: { after: 0, ms: 1, max: 1 },
    countIf() {
      counted.push(name)
      return false
    },
  })
  const app = new Hono().use(limitHono(options('outer'))).use(limitHono(options('inner')))
  app.get('/', (context) => context.text(context.get('rateLimit' as never) === undefined ? 'none' : 'hello'))
  const limited = limitHono(options('function'), () => new Response('hello'))
  for (let i = 0; i < 2; i++) {
    const { headers } = await app.request('/')
    assert.is(headers.get('ratelimit'), '"default";r=4;t=61, "default";r=4;t=61')
    assert.is((await limited(new Request('http://host/'))).headers.get('ratelimit'), '"default";r=4;t=61')
  }
  assert.equal(counted, ['inner', 'outer', 'function', 'inner', 'outer', 'function'])
})

test('Hono without a server: a request whose client has gone stays charged', async () => {
  const gone = new AbortController()
  const options = { ...base(), limit: 2, key: () => 'all', countIf: () => false }
  const app = new Hono().use(limitHono(options)).get('/', (context) => context.text('hello'))
  const limited = limitHono(options, () => new Response('hello'))
  gone.abort()
  const requests = () => [new Request('http://host/', { signal: gone.signal }), new Request('http://host/')]
  for (const fetch of [(request: Request) => app.request(request), limited]) {
    const left: (string | null)[] = []
    for (const request of requests()) left.push((await fetch(request)).headers.get('ratelimit'))
    assert.equal(left, ['"default";r=1;t=61', '"default";r=0;t=61'])
  }
})

test('Hono: a response that upgrades the connection stays as it is', async () => {
  // Deno and Workers have such responses. Node.js does not make them.
  const upgrade = Object.defineProperty(new Response(), 'status', { value: 101 })
  const app = new Hono().use(limitHono({ ...base(), key: () => 'all' })).get('/', () => upgrade)
  assert.is(await app.request('/'), upgrade)
  const limited = limitHono({ ...base(), key: () => 'all' }, () => upgrade)
  assert.is(await limited(new Request('http://host/')), upgrade)
})

test('Hono: exposed headers of the app stay exposed', async () => {
  const app = new Hono()
  app.use(cors({ origin: '*', exposeHeaders: ['X-Own'] }))
  app.use(limitHono({ ...base(), key: () => 'all', exposeHeaders: true }))
  app.get('/', (context) => context.text('hello'))
  for (let i = 0; i < 2; i++) {
    const { headers } = await app.request('/')
    assert.is(headers.get('access-control-expose-headers'), 'X-Own, RateLimit, RateLimit-Policy, Retry-After')
  }
})

test.run()
