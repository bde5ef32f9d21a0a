// The interceptor in dispatchers of undici 7: their own servers, and a clock that the test turns.
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { Readable } from 'node:stream'
import { createLimiter, MillraceLimited, manualClock } from 'millrace'
import type { OutgoingOptions } from 'millrace/fetch'
import { limitInterceptor } from 'millrace/undici'
import { Agent, Client, type Dispatcher, interceptors, Pool, request, fetch as undiciFetch } from 'undici'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertIsError, settled, turn, until } from '../limiter/support.js'
import { times, withServer } from './support.js'
import { answering, MINUTE_MS, textOf } from './undici-support.js'

test('requests over the limit wait, and their bodies are not read before their turn', () =>
  answering([], async ({ url, clock, log, agent }) => {
    const dispatcher = agent()
    await times(2, () => textOf(url, dispatcher))
    let reads = 0
    const body = new Readable({
      read() {
        reads++
        this.push('data')
        this.push(null)
      },
    })
    const pending = textOf(url, dispatcher, { method: 'POST', body })
    for (let i = 0; i < 5; i++) await turn()
    assert.equal([reads, log.length], [0, 2])
    clock.advance(MINUTE_MS)
    assert.equal(await pending, [200, 'hello'])
    assert.is(log[2], 'POST / data')
  }))

test('they wait in the order of the calls, for fetch, request, stream and pools alike', () =>
  answering([], async ({ url, host, clock, limiter, log, agent }) => {
    const dispatcher = agent()
    const pool = new Pool(url).compose(limitInterceptor({ limiter, key: host, jitter: () => 0 }))
    await times(2, () => textOf(url, dispatcher))
    const pending = [
      undiciFetch(`${url}/fetch`, { dispatcher }).then((response) => response.text()),
      textOf(`${url}/request`, dispatcher),
      pool.request({ path: '/pool', method: 'GET' }).then(({ body }) => body.text()),
    ]
    for (let sent = 2; sent < 5; ) {
      const { length } = log
      await until(() => {
        clock.advance(MINUTE_MS)
        return log.length > length
      }, 'the next')
      sent = log.length
    }
    await Promise.all(pending)
    assert.equal(new Set(log.slice(2, 4)), new Set(['GET /fetch ', 'GET /request ']))
    assert.is(log[4], 'GET /pool ')
    await pool.destroy()
  }))

test('dispatch returns what the dispatcher does if there is room, and true if the request waits', () =>
  answering([], async ({ url, clock, limiter, log }) => {
    for (const answer of [true, false]) {
      limiter.clearAll()
      const returned: boolean[] = []
      const client = new Client(url)
      const inner: Dispatcher.DispatcherComposeInterceptor = (dispatch) => (options, handler) => {
        dispatch(options, handler)
        return answer
      }
      const dispatcher = client.compose(inner, limitInterceptor({ limiter, key: 'all', jitter: () => 0 }))
      const ends: Promise<void>[] = []
      const send = () => {
        let end: () => void = () => {}
        ends.push(new Promise((resolve) => (end = resolve)))
        const handler = { onRequestStart() {}, onResponseEnd: () => end(), onResponseError: () => end() }
        returned.push(dispatcher.dispatch({ path: '/', method: 'GET' }, handler))
      }
      for (let i = 0; i < 3; i++) send()
      await Promise.all(ends.slice(0, 2))
      clock.advance(MINUTE_MS)
      await Promise.all(ends)
      assert.equal(returned, [answer, answer, true])
      await client.close()
    }
    assert.is(log.length, 6)
  }))

test('an abort ends a request that waits, before and after it began to; nothing stays charged', () =>
  answering([], async ({ url, host, clock, limiter, log, agent }) => {
    const dispatcher = agent()
    await times(2, () => textOf(url, dispatcher))
    const [controller, other] = [new AbortController(), new AbortController()]
    const body = Readable.from(['data'])
    const pending = [
      settled(request(url, { dispatcher, signal: controller.signal, method: 'POST', body })),
      settled(undiciFetch(url, { dispatcher, signal: controller.signal })),
      settled(request(url, { dispatcher, signal: AbortSignal.abort(new Error('enough')) })),
    ]
    const next = textOf(url, dispatcher, { signal: other.signal })
    await turn()
    controller.abort(new Error('enough'))
    for (const outcome of await Promise.all(pending))
      assert.is((outcome as PromiseRejectedResult).reason.message, 'enough')
    assert.ok(body.destroyed)
    clock.advance(MINUTE_MS)
    assert.equal(await next, [200, 'hello'])
    assert.equal([log.length, limiter.usage(host)], [3, 1])
  }))

test('an abort ends a request that is on its way', async () => {
  const controller = new AbortController()
  await withServer(
    () => controller.abort(new Error('enough')), // never answers
    async (url) => {
      const limiter = createLimiter({ limit: 1, window: '1s' })
      const agent = new Agent()
      const dispatcher = agent.compose(limitInterceptor({ limiter }))
      const outcome = await settled(request(url, { dispatcher, signal: controller.signal }))
      assert.is((outcome as PromiseRejectedResult).reason.message, 'enough')
      await agent.destroy()
      await limiter.close()
    },
  )
})

test('requests are refused by name: maxPending, maxWaitMs, mode', () =>
  answering([], async ({ url, log, agent }) => {
    await times(2, () => textOf(url, agent()))
    const reasonOf = async (options: Partial<OutgoingOptions>) =>
      ((await settled(textOf(url, agent(options)))) as PromiseRejectedResult).reason
    assertIsError(await reasonOf({ maxPending: 0 }), 'ERR_MILLRACE_OVERLOADED', 'maxPending')
    assert.instance(await reasonOf({ mode: 'refuse' }), MillraceLimited)
    assert.instance(await reasonOf({ maxWaitMs: 1 }), MillraceLimited)
    assert.is(log.length, 2)
  }))

test('a 429 and a 503 that tell when are sent again, and the caller sees one answer', async () => {
  for (const status of [429, 503]) {
    await answering(
      [{ status, headers: { 'Retry-After': '30' }, body: 'x'.repeat(300_000) }],
      async (setting) => {
        const { url, host, clock, limiter, log, agent } = setting
        const dispatcher = agent()
        const answers = [
          textOf(url, dispatcher, { method: 'PUT', body: 'data' }),
          undiciFetch(`${url}/fetch`, { dispatcher }).then(
            async (response): Promise<[number, string]> => [response.status, await response.text()],
          ),
        ]
        await until(() => limiter.peek(host, 0).retryAfterMs > 0, 'a pause')
        const later = textOf(`${url}/later`, dispatcher)
        await turn()
        assert.not.ok(log.includes('GET /later '))
        await until(() => {
          clock.advance(MINUTE_MS)
          return log.length === 4
        }, 'all of them')
        assert.equal(await Promise.all([...answers, later]), Array(3).fill([200, 'hello']))
      },
    )
  }
})

test('an answer without an end does not keep a request from being sent again', async () => {
  let requests = 0
  const listener: RequestListener = (_, response) => {
    if (requests++ > 0) {
      response.end('hello')
      return
    }
    response.writeHead(429, { 'Retry-After': '0' })
    const write = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    }
    response.on('drain', write)
    write()
  }
  await withServer(listener, async (url) => {
    const limiter = createLimiter({ limit: 5, window: '1s' })
    const agent = new Agent()
    assert.equal(await textOf(url, agent.compose(limitInterceptor({ limiter }))), [200, 'hello'])
    await agent.destroy()
    await limiter.close()
  })
})

test('a body that is a stream or an iterable is sent once', async () => {
  for (const body of [() => Readable.from(['data']), () => ['data'][Symbol.iterator]()]) {
    await answering([{ status: 429, headers: { 'Retry-After': '0' } }], async ({ url, log, agent }) => {
      assert.equal(await textOf(url, agent(), { method: 'POST', body: body() as Readable }), [429, 'hello'])
      assert.equal(log, ['POST / data'])
    })
  }
})

test('retries: as many as told, then the answer itself', () =>
  answering(
    Array(4).fill({ status: 429, headers: { 'Retry-After': '0' }, body: 'too many' }),
    async ({ url, log, agent }) => {
      assert.equal(await textOf(url, agent({ retries: 1 })), [429, 'too many'])
      assert.equal(await textOf(url, agent({ retries: 0 })), [429, 'too many'])
      assert.is(log.length, 3)
    },
    100,
  ))

test('redirects are counted, by the interceptor of undici and by its fetch', () =>
  answering(
    [
      { status: 302, headers: { Location: '/end' } },
      { status: 200 },
      { status: 302, headers: { Location: '/end' } },
    ],
    async ({ url, host, limiter, log, agent }) => {
      const dispatcher = agent()
      await textOf(url, dispatcher.compose(interceptors.redirect({ maxRedirections: 3 })))
      await (await undiciFetch(url, { dispatcher })).text()
      assert.equal(log, ['GET / ', 'GET /end ', 'GET / ', 'GET /end '])
      assert.is(limiter.usage(host), 4)
    },
    10,
  ))

test('a lost connection is the error of undici, and counts for a window', async () => {
  await withServer(
    (incoming) => void incoming.socket.destroy(),
    async (url) => {
      const clock = manualClock()
      const limiter = createLimiter({ limit: 5, window: '1m', clock })
      const agent = new Agent()
      const outcome = await settled(
        request(url, { dispatcher: agent.compose(limitInterceptor({ limiter })), method: 'POST' }),
      )
      assert.match((outcome as PromiseRejectedResult).reason.code, /^(UND_ERR_SOCKET|ECONNRESET)$/)
      assert.is(limiter.usage(new URL(url).host), 1)
      clock.advance(MINUTE_MS)
      assert.is(limiter.usage(new URL(url).host), 0)
      await agent.destroy()
      await limiter.close()
    },
  )
})

test('an upgrade counts like an answer', async () => {
  const limiter = createLimiter({ limit: 5, window: '10m' })
  const { createServer } = await import('node:http')
  const server = createServer().on('upgrade', (_, socket) => {
    socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const client = new Client(`http://127.0.0.1:${port}`)
  const { socket } = await client
    .compose(limitInterceptor({ limiter, key: 'all' }))
    .upgrade({ path: '/', protocol: 'echo' })
  assert.is(limiter.usage('all'), 1)
  socket.destroy()
  await client.destroy()
  await new Promise((resolve) => server.close(resolve))
  await limiter.close()
})

test.run()
