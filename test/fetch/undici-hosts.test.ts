import { MillraceLimited } from 'millrace'
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
import { withServer } from './support.js'
import { answering, MINUTE_MS, textOf } from './undici-support.js'

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

test('each spelling of a host has its limit, and no other host has it', () =>
  answering(
    [],
    async ({ url, limiter }) => {
      const { port } = new URL(url)
      const agent = new Agent({
        connect: { lookup: (_, __, found) => found(null, [{ address: '127.0.0.1', family: 4 }]) },
      })
      const dispatcher = agent.compose(limitInterceptor({ limiter }))
      for (const [host, spellings] of Object.entries({
        'api.test': [
          'api.test',
          'API.test',
          'api.test.',
          'user:word@api.test',
          '%61pi.test',
          '\uff41pi.test',
        ],
        'xn--bcher-kva.test': ['b\u00fccher.test', 'B\u00dcCHER.test.', 'xn--bcher-kva.test'],
        '127.0.0.1': ['127.0.0.1', '127.1', '0x7f.0.0.1', '2130706433', '127.0.0.1.'],
        'www.api.test': ['www.api.test'],
        'api.test..': ['api.test..'],
      })) {
        for (const spelling of spellings) await textOf(`http://${spelling}:${port}/`, dispatcher)
        assert.is(limiter.usage(`${host}:${port}`), spellings.length, host)
      }
      await agent.destroy()
    },
    10,
  ))

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
