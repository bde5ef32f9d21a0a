// How calls wait, and when they are refused: a real server, and a limiter on a clock that the test turns.
import { createLimiter, type LimiterOptions, type ManualClock, MillraceLimited, manualClock } from 'millrace'
import { limitedFetch, type OutgoingOptions } from 'millrace/fetch'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertIsError, settled, turn, until } from '../limiter/support.js'
import { times, withServer } from './support.js'

const WINDOW_MS = 60_000

interface Setting {
  readonly url: string
  readonly clock: ManualClock
  readonly limiter: ReturnType<typeof makeLimiter>
  /** The paths of the requests, in the order in which they came. */
  readonly log: string[]
  limited(options?: Partial<OutgoingOptions>): typeof fetch
}

const makeLimiter = (clock: ManualClock, options: Partial<LimiterOptions> = {}) =>
  createLimiter({ limit: 2, window: WINDOW_MS, clock, ...options })

/** A server that answers at once, and a limiter of 2 a minute. */
async function withLog(use: (setting: Setting) => Promise<void>, options?: Partial<LimiterOptions>) {
  const log: string[] = []
  await withServer(
    (request, response) => {
      log.push(request.url!)
      response.end('hello\n')
    },
    async (url) => {
      const clock = manualClock()
      const limiter = makeLimiter(clock, options)
      const limited = (more: Partial<OutgoingOptions> = {}) =>
        limitedFetch(fetch, { limiter, jitter: () => 0, ...more })
      await use({ url, clock, limiter, log, limited })
      await limiter.close()
    },
  )
}

const pass = (clock: ManualClock) => clock.advance(WINDOW_MS * 1.02)

test('calls over the limit wait, and are sent in the order of the calls', () =>
  withLog(async ({ url, clock, log, limited }) => {
    const call = limited()
    const calls = times(6, (i) => call(`${url}/${i}`))
    for (const sent of [2, 4]) {
      await until(() => log.length === sent, `${sent} requests`)
      await turn()
      assert.is(log.length, sent)
      await untilMore(clock, log)
    }
    await calls
    assert.equal(log.toSorted(), ['/0', '/1', '/2', '/3', '/4', '/5'])
    assert.equal(new Set(log.slice(0, 2)), new Set(['/0', '/1']))
    assert.equal(new Set(log.slice(2, 4)), new Set(['/2', '/3']))
  }))

/** Turns the clock, window by window, until another request has come: answers may still be on their way. */
async function untilMore(clock: ManualClock, log: readonly string[]): Promise<void> {
  const { length } = log
  await until(() => {
    pass(clock)
    return log.length > length
  }, 'another request')
}

test('a call whose signal is aborted leaves the queue, and the next one takes its turn', () =>
  withLog(async ({ url, clock, limiter, log, limited }) => {
    const call = limited()
    await times(2, () => call(`${url}/first`).then((response) => response.text()))
    const controller = new AbortController()
    const aborted = settled(call(`${url}/aborted`, { signal: controller.signal }))
    const next = call(`${url}/next`)
    await turn()
    const reason = new Error('not wanted any more')
    controller.abort(reason)
    const outcome = await aborted
    assert.is((outcome as PromiseRejectedResult).reason, reason)
    pass(clock)
    assert.is((await next).status, 200)
    assert.equal(log, ['/first', '/first', '/next'])
    assert.is(limiter.usage(new URL(url).host), 1)
  }))

test('a signal that is aborted before the call sends nothing and charges nothing', () =>
  withLog(async ({ url, limiter, log, limited }) => {
    const reason = new Error('never mind')
    for (const input of [url, new Request(url, { signal: AbortSignal.abort(reason) })]) {
      const init = typeof input === 'string' ? { signal: AbortSignal.abort(reason) } : undefined
      const outcome = await settled(limited()(input, init))
      assert.is((outcome as PromiseRejectedResult).reason, reason)
    }
    assert.equal(log, [])
    assert.is(limiter.usage(new URL(url).host), 0)
  }))

test('the signal ends a call that is on its way, too', async () => {
  const controller = new AbortController()
  await withServer(
    () => controller.abort(new Error('enough')), // never answers
    async (url) => {
      const limiter = createLimiter({ limit: 1, window: '1s' })
      const outcome = await settled(limitedFetch(fetch, { limiter })(url, { signal: controller.signal }))
      assert.is((outcome as PromiseRejectedResult).reason.message, 'enough')
      await limiter.close()
    },
  )
})

test('more pending calls than maxPending are refused by name; 0 allows none', () =>
  withLog(async ({ url, clock, log, limited }) => {
    const call = limited({ maxPending: 1 })
    await times(2, () => call(url))
    const pending = call(url)
    assertIsError(await reasonOf(call(url)), 'ERR_MILLRACE_OVERLOADED', 'maxPending')
    assertIsError(await reasonOf(limited({ maxPending: 0 })(url)), 'ERR_MILLRACE_OVERLOADED', 'maxPending')
    pass(clock)
    await pending
    assert.is(log.length, 3)
    await limited({ maxPending: 0 })(url) // there is room
  }))

test("mode 'refuse' rejects with the decision, and sends nothing", () =>
  withLog(async ({ url, log, limited }) => {
    const call = limited({ mode: 'refuse' })
    await times(2, () => call(url))
    const error = await reasonOf(call(url))
    assert.instance(error, MillraceLimited)
    const { retryAfterMs } = (error as MillraceLimited).decision
    assert.ok(retryAfterMs > 0 && retryAfterMs <= WINDOW_MS * 1.02)
    assert.is(log.length, 2)
  }))

test('a call that waits longer than maxWaitMs is refused by name, and leaves the queue', () =>
  withLog(async ({ url, clock, log, limited }) => {
    await times(2, () => limited()(url))
    for (const maxWaitMs of [0, 1]) {
      const error = await reasonOf(limited({ maxWaitMs })(url))
      assert.instance(error, MillraceLimited, `${maxWaitMs}`)
    }
    pass(clock)
    await limited()(url)
    assert.is(log.length, 3)
  }))

test('a paused host refuses at once a call that could not wait so long', () =>
  withLog(async ({ url, limiter, log, limited }) => {
    limiter.block(new URL(url).host, '1d')
    const error = await reasonOf(limited({ maxWaitMs: 60_000 })(url))
    assert.is((error as MillraceLimited).decision.retryAfterMs, 86_400_000)
    assert.equal(log, [])
  }))

test('a closed limiter rejects pending calls and new ones by name; calls on their way are answered', async () => {
  const limiter = createLimiter({ limit: 1, window: '1h' })
  await withServer(
    (_, response) => void limiter.close().then(() => response.end('hello\n')),
    async (url) => {
      const call = limitedFetch(fetch, { limiter })
      const [first, second] = await Promise.all([settled(call(url)), settled(call(url))])
      assert.is(first.status, 'fulfilled')
      assertIsError((second as PromiseRejectedResult).reason, 'ERR_MILLRACE_CLOSED', 'limiter')
      assertIsError(await reasonOf(call(url)), 'ERR_MILLRACE_CLOSED', 'limiter')
    },
  )
})

test('each host has its own limit; a key of your own holds for all of its calls', () =>
  withLog(async ({ url, limiter, limited }) => {
    const byName = url.replace('127.0.0.1', 'localhost')
    const { host } = new URL(url)
    await limited()(url)
    assert.equal([limiter.usage(host), limiter.usage(new URL(byName).host)], [1, 0])
    await limited({ key: 'everything' })(url)
    assert.equal([limiter.usage(host), limiter.usage('everything')], [1, 1])
    const key: OutgoingOptions['key'] = ({ url: { pathname }, method, headers }) =>
      `${method} ${pathname} ${headers.get('x-account')}`
    await limited({ key })(new Request(`${url}/items`, { method: 'post', headers: { 'x-account': '7' } }))
    assert.is(limiter.usage('POST /items 7'), 1)
    await limited({ key })(`${url}/items`, { headers: { 'X-Account': '8' } })
    assert.is(limiter.usage('GET /items 8'), 1)
  }))

test('what has no host is not limited, and what is no URL is rejected', () =>
  withLog(async ({ limiter, limited }) => {
    const call = limited({ key: 'all' })
    assert.is(await (await call('data:,hello')).text(), 'hello')
    assert.is(limiter.usage('all'), 0)
    assert.instance(await reasonOf(call('/relative')), TypeError)
    assert.is(limiter.usage('all'), 0)
  }))

test('the same calls are answered as by fetch: a URL, a string, a Request, with a body of each kind', async () => {
  await withServer(
    async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      response.end(`${request.method} ${request.headers['x-test']} ${Buffer.concat(chunks)}`)
    },
    async (url) => {
      const limiter = createLimiter({ limit: 100, window: '1s' })
      const call = limitedFetch(fetch, { limiter })
      const headers = { 'x-test': 'yes' }
      const stream = () => new Blob(['body']).stream() as ReadableStream
      const inits: (() => RequestInit)[] = [
        () => ({ headers }),
        () => ({ method: 'POST', headers, body: 'body' }),
        () => ({ method: 'PUT', headers, body: new TextEncoder().encode('body') }),
        () => ({ method: 'POST', headers, body: new URLSearchParams({ a: 'b' }) }),
        () => ({ method: 'POST', headers, body: stream(), duplex: 'half' }),
      ]
      for (const init of inits) {
        for (const input of [() => url, () => new URL(url)]) {
          const [ours, theirs] = [await call(input(), init()), await fetch(input(), init())]
          assert.is(await ours.text(), await theirs.text())
          assert.equal(
            [ours.status, ours.url, ours.redirected],
            [theirs.status, theirs.url, theirs.redirected],
          )
        }
        assert.is(
          await (await call(new Request(url, init()))).text(),
          await (await fetch(url, init())).text(),
        )
      }
      await limiter.close()
    },
  )
})

async function reasonOf(promise: Promise<unknown>): Promise<unknown> {
  const outcome = await settled(promise)
  assert.is(outcome.status, 'rejected')
  return (outcome as PromiseRejectedResult).reason
}

test.run()
