// The interceptor in dispatchers of undici 7: their own servers, and a clock that the test turns.
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { Readable } from 'node:stream'
import { createLimiter, type Limiter, type ManualClock, MillraceLimited, manualClock } from 'millrace'
import type { OutgoingOptions, OutgoingRequest } from 'millrace/fetch'
import { limitInterceptor } from 'millrace/undici'
import {
  Agent,
  Client,
  type Dispatcher,
  interceptors,
  Pool,
  RetryAgent,
  request,
  fetch as undiciFetch,
} from 'undici'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertIsError, settled, turn, until } from '../limiter/support.js'
import { times, withServer } from './support.js'

interface Setting {
  readonly url: string
  readonly host: string
  readonly clock: ManualClock
  readonly limiter: Limiter
  readonly log: string[]
  agent(options?: Partial<OutgoingOptions>): Dispatcher
}

interface Told {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** A server that answers by the list, then with 200; and dispatchers with a limit of 2 a minute. */
async function answering(
  list: readonly Told[],
  use: (setting: Setting) => Promise<void>,
  limit = 2,
): Promise<void> {
  const answers = [...list]
  const log: string[] = []
  const listener: RequestListener = async (incoming, response) => {
    let body = ''
    for await (const chunk of incoming) body += chunk
    log.push(`${incoming.method} ${incoming.url} ${body}`)
    const { status, headers, body: text = 'hello' } = answers.shift() ?? { status: 200 }
    response.writeHead(status, headers).end(text)
  }
  await withServer(listener, async (url) => {
    const clock = manualClock(5_000_000)
    const limiter = createLimiter({ limit, window: '1m', clock })
    const agents: Agent[] = []
    const agent = (options: Partial<OutgoingOptions> = {}) => {
      const own = new Agent()
      agents.push(own)
      return own.compose(limitInterceptor({ limiter, jitter: () => 0, ...options }))
    }
    await use({ url, host: new URL(url).host, clock, limiter, log, agent })
    await Promise.all(agents.map((each) => each.destroy()))
    await limiter.close()
  })
}

const MINUTE_MS = 61_000

/** Sends a request, and reads its whole answer. */
async function textOf(url: string, dispatcher: Dispatcher, options: object = {}): Promise<[number, string]> {
  const { statusCode, body } = await request(url, { dispatcher, ...options })
  return [statusCode, await body.text()]
}

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

test('the key sees the URL, the method and the headers in each form', () =>
  answering(
    [],
    async ({ url, agent }) => {
      const seen: string[] = []
      const key = ({ url: { pathname }, method, headers }: OutgoingRequest) => {
        seen.push(`${method} ${pathname} ${headers.get('x-account')}`)
        return 'all'
      }
      const dispatcher = agent({ key })
      const forms = [{ 'X-Account': '7' }, ['X-Account', '7'], new Map([['X-Account', '7']]), undefined]
      for (const headers of forms) await textOf(`${url}/a?b`, dispatcher, { headers })
      assert.equal(seen, [...Array(3).fill('GET /a 7'), 'GET /a null'])
    },
    10,
  ))

test('the origin alone names the host: no path makes another of it', async () => {
  await answering([], async ({ url, host, clock, limiter }) => {
    const keys: string[] = []
    const paths = [
      '//x.test/',
      '/\\x.test/',
      '/\\\\x.test',
      '///x.test/',
      '/\t/x.test',
      'http://x.test/',
      'https://x.test//',
    ]
    for (const origin of [url, new URL(url)]) {
      for (const path of paths) {
        limiter.clearAll()
        const agent = new Agent().compose(
          limitInterceptor({ limiter, mode: 'refuse' }),
          (dispatch) => (options, handler) => dispatch({ ...options, origin, path }, handler),
        )
        const send = () => settled(request(url, { dispatcher: agent }).then(({ body }) => body.dump()))
        const outcomes = [await send(), await send(), await send()]
        keys.push(`${limiter.usage(host)} ${limiter.usage('x.test')}`)
        assert.instance((outcomes[2] as PromiseRejectedResult).reason, MillraceLimited, path)
        await agent.destroy()
      }
    }
    assert.equal(new Set(keys), new Set(['2 0']))
    clock.advance(MINUTE_MS)
  })
})

test('a foreign host pauses itself, not the host that its path names', async () => {
  await withServer(
    (_, response) => response.writeHead(429, { 'Retry-After': `${365 * 86_400}` }).end(),
    (url) =>
      answering([], async ({ url: honest, host, limiter }) => {
        const dispatcher = new Agent().compose(limitInterceptor({ limiter, retries: 0 }))
        const { body } = await dispatcher.request({ origin: url, path: `//${host}/`, method: 'GET' })
        await body.dump()
        assert.is(limiter.peek(host, 0).retryAfterMs, 0)
        const pausedMs = limiter.peek(new URL(url).host, 0).retryAfterMs
        assert.ok(pausedMs >= 3_600_000 && pausedMs < 3_601_000, `${pausedMs}`)
        assert.equal(await textOf(honest, dispatcher), [200, 'hello'])
        await dispatcher.destroy()
      }),
  )
})

/** A dispatcher that is closed is destroyed as soon as what it sends has its answer. */
const ENDINGS = {
  destroy: /^UND_ERR_DESTROYED$/,
  close: /^UND_ERR_(CLOSED|DESTROYED)$/,
}
const DISPATCHERS: Record<string, (url: string) => Dispatcher> = {
  Agent: () => new Agent(),
  Pool: (url) => new Pool(url),
  Client: (url) => new Client(url),
  RetryAgent: () => new RetryAgent(new Agent(), { statusCodes: [], maxRetries: 0 }),
  'an Agent behind dns': () => new Agent().compose(interceptors.dns()),
  'an Agent behind an interceptor': () =>
    new Agent().compose((dispatch) => (options, handler) => dispatch(options, handler)),
}

for (const [name, make] of Object.entries(DISPATCHERS)) {
  for (const [method, code] of Object.entries(ENDINGS)) {
    test(`${method} of ${name} ends what waits, and what is sent again, and leaves nothing charged`, () =>
      answering([{ status: 200 }, { status: 429, headers: { 'Retry-After': '30' } }], async (setting) => {
        const { url, host, limiter, clock } = setting
        const inner = make(url)
        const interceptor = limitInterceptor({ limiter, jitter: () => 0 })
        const dispatcher = inner.compose(interceptor, interceptors.redirect({ maxRedirections: 2 }))
        await textOf(url, dispatcher)
        const pending: Promise<PromiseSettledResult<unknown>>[] = [settled(textOf(url, dispatcher))]
        await until(() => limiter.peek(host, 0).retryAfterMs > 0, 'a pause')
        for (let i = 0; i < 3; i++) pending.push(settled(textOf(url, dispatcher)))
        pending.push(settled(undiciFetch(url, { dispatcher }).then((response) => response.text())))
        const ended = method === 'close' ? inner.close() : inner.destroy()
        for (const outcome of await Promise.all(pending)) {
          const { reason } = outcome as PromiseRejectedResult
          assert.match(reason.code ?? reason.cause.code, code)
        }
        await ended
        clock.advance(MINUTE_MS)
        for (let i = 0; i < 5; i++) await turn()
        assert.is(limiter.usage(host), 0)
      }))
  }
}

test('while requests wait, the dispatcher stays as it is: their turn comes on the same connections', () =>
  answering([], async ({ url, host, clock, limiter, log }) => {
    let connections = 0
    for (const inner of [new Agent({ connections: 2 }), new Pool(url, { connections: 2 }), new Client(url)]) {
      limiter.clearAll()
      const before = log.length
      inner.on('connect', () => connections++)
      let asked = 0
      const dispatcher = inner
        .compose((dispatch) => (options, handler) => {
          if (options.path === '') asked++
          return dispatch(options, handler)
        })
        .compose(limitInterceptor({ limiter, key: host, jitter: () => 0 }))
      const get = () =>
        dispatcher.request({ origin: url, path: '/', method: 'GET' }).then(({ body }) => body.text())
      await get()
      await get()
      const opened = connections
      const pending = get()
      await until(() => asked > 1, 'the dispatcher to be asked')
      clock.advance(MINUTE_MS)
      assert.is(await pending, 'hello')
      assert.is(log.length, before + 3)
      assert.is(connections, opened)
      await inner.close()
    }
  }))

test('a request without an origin needs a key, and a key that throws is its error', () =>
  answering([], async ({ url, limiter }) => {
    const client = new Client(url)
    const reasonOf = async (options: Partial<OutgoingOptions>) => {
      const composed = client.compose(limitInterceptor({ limiter, ...options }))
      const dispatch = () => composed.dispatch({ path: '/', method: 'GET' }, { onRequestStart() {} })
      try {
        dispatch()
      } catch (error) {
        return error
      }
      return undefined
    }
    assertIsError(await reasonOf({}), 'ERR_MILLRACE_INVALID_OPTION', 'origin')
    const thrown = new Error('no key')
    const key = () => {
      throw thrown
    }
    assert.is(await reasonOf({ key }), thrown)
    await client.destroy()
  }))

test.run()
