// What servers tell, and what all callers of a host do then: on a clock that the test turns. A call is on the
// server's log with the time of its arrival.

import type { RequestListener } from 'node:http'
import express from 'express'
import { createLimiter, type Limiter, type ManualClock, MillraceLimited, manualClock } from 'millrace'
import { rateLimit } from 'millrace/express'
import { limitedFetch, type OutgoingOptions } from 'millrace/fetch'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { settled, turn, until } from '../limiter/support.js'
import { times, withServer } from './support.js'

interface Arrival {
  readonly atMs: number
  readonly method: string
  readonly body: string
}

interface Setting {
  readonly url: string
  readonly host: string
  readonly clock: ManualClock
  readonly limiter: Limiter
  readonly log: Arrival[]
  call: typeof fetch
  /** How long the host is paused, in milliseconds. */
  pausedMs(): number
  with(options: Partial<OutgoingOptions>): typeof fetch
}

interface Told {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
}

/** A server that answers by the list, then with 200; and calls to it with room for a thousand. */
async function telling(list: readonly Told[], use: (setting: Setting) => Promise<void>): Promise<void> {
  const answers = [...list]
  const clock = manualClock(5_000_000)
  const log: Arrival[] = []
  const listener: RequestListener = async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    log.push({ atMs: clock.now(), method: request.method!, body })
    const { status, headers } = answers.shift() ?? { status: 200 }
    response.writeHead(status, headers).end(`status ${status}`)
  }
  await withServer(listener, async (url) => {
    const { host } = new URL(url)
    const limiter = createLimiter({ limit: 1_000, window: '1s', clock })
    const options = { limiter, jitter: () => 0, maxWaitMs: Number.POSITIVE_INFINITY }
    const withOptions = (more: Partial<OutgoingOptions>) => limitedFetch(fetch, { ...options, ...more })
    const pausedMs = () => limiter.peek(host, 0).retryAfterMs
    const call = withOptions({})
    await use({ url, host, clock, limiter, log, call, pausedMs, with: withOptions })
    await limiter.close()
  })
}

const isPaused = ({ pausedMs }: Setting) => until(() => pausedMs() > 0, 'a pause')
/** Pauses are in steps of a sixteenth of a second, rounded up. */
const STEP_MS = 62.5

function assertPause(ms: number, told: number): void {
  assert.ok(ms >= told && ms <= told + STEP_MS, `paused for ${ms} ms, told ${told} ms`)
}

const statusesOf = async (calls: Promise<Response[]>) => (await calls).map(({ status }) => status)

for (const status of [429, 503]) {
  test(`after a ${status} with Retry-After, no caller of the host sends before, and the call is sent again`, () =>
    telling([{ status, headers: { 'Retry-After': '30' } }], async (setting) => {
      const { url, clock, log, call, pausedMs } = setting
      const first = call(url)
      await isPaused(setting)
      assertPause(pausedMs(), 30_000)
      const others = times(5, () => setting.with({})(url)) // of other functions on the same limiter
      clock.advance(29_999)
      for (let i = 0; i < 5; i++) await turn()
      assert.is(log.length, 1)
      clock.advance(STEP_MS + 1)
      assert.is((await first).status, 200)
      assert.equal(await statusesOf(others), Array(5).fill(200))
      assert.is(log.length, 7)
      assert.ok(log.slice(1).every(({ atMs }) => atMs >= log[0]!.atMs + 30_000))
    }))
}

test('a quota with nothing left pauses the host after a 200, in each form of the headers', async () => {
  const forms: readonly Record<string, string>[] = [
    { RateLimit: '"default";r=0;t=20' },
    { RateLimit: 'limit=5, remaining=0, reset=20' },
    { 'RateLimit-Limit': '5', 'RateLimit-Remaining': '0', 'RateLimit-Reset': '20' },
    { 'X-RateLimit-Limit': '5', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '20' },
  ]
  for (const headers of forms) {
    await telling([{ status: 200, headers }], async (setting) => {
      const { url, clock, log, call, pausedMs } = setting
      assert.is((await call(url)).status, 200)
      assertPause(pausedMs(), 20_000)
      const next = call(url)
      clock.advance(19_999)
      await turn()
      assert.is(log.length, 1)
      clock.advance(STEP_MS + 1)
      assert.is((await next).status, 200)
    })
  }
})

test('a quota with something left does not pause', () =>
  telling(
    [{ status: 200, headers: { RateLimit: '"default";r=1;t=20' } }],
    async ({ url, call, pausedMs }) => {
      await call(url)
      assert.is(pausedMs(), 0)
    },
  ))

test('a shorter pause does not end a longer one', () =>
  telling(
    [
      { status: 429, headers: { 'Retry-After': '60' } },
      { status: 429, headers: { 'Retry-After': '1' } },
    ],
    async (setting) => {
      const call = setting.with({ retries: 0 })
      assert.equal(await statusesOf(times(2, () => call(setting.url))), [429, 429])
      assertPause(setting.pausedMs(), 60_000)
    },
  ))

test('a 429 that tells no time pauses for a second, then for two, and is returned after two more attempts', () =>
  telling(Array(3).fill({ status: 429 }), async (setting) => {
    const { url, clock, log, call, pausedMs } = setting
    const response = call(url)
    await isPaused(setting)
    assertPause(pausedMs(), 1_000)
    clock.advance(1_063)
    await until(() => log.length === 2 && pausedMs() > 0, 'the second attempt')
    assertPause(pausedMs(), 2_000)
    clock.advance(2_063)
    assert.is((await response).status, 429)
    assert.is(log.length, 3)
    assertPause(pausedMs(), 4_000)
  }))

test('a 503 that tells no time is returned at once, and does not pause', () =>
  telling([{ status: 503 }], async ({ url, log, call, pausedMs }) => {
    assert.is((await call(url)).status, 503)
    assert.equal([log.length, pausedMs()], [1, 0])
  }))

test('Retry-After that is negative or malformed counts as not told', async () => {
  for (const value of ['-1', 'soon', '']) {
    const headers = { 'Retry-After': value }
    await telling([{ status: 503, headers }], async ({ url, call, pausedMs }) => {
      assert.is((await call(url)).status, 503)
      assert.is(pausedMs(), 0)
    })
  }
})

test('Retry-After: 0 sends a 429 again at once', () =>
  telling([{ status: 429, headers: { 'Retry-After': '0' } }], async ({ url, log, call }) => {
    assert.is((await call(url)).status, 200)
    assert.is(log.length, 2)
  }))

test('a date pauses until then, by the clock of the server', () => {
  const now = 'Tue, 14 Nov 2023 22:13:20 GMT'
  const headers = { Date: now, 'Retry-After': 'Tue, 14 Nov 2023 22:13:50 GMT' }
  return telling([{ status: 429, headers }], async (setting) => {
    const response = setting.call(setting.url)
    await isPaused(setting)
    assertPause(setting.pausedMs(), 30_000)
    setting.clock.advance(31_000)
    assert.is((await response).status, 200)
  })
})

test('a pause is as long as told, and at most maxPauseMs: the call is returned if it may not wait so long', async () => {
  const YEAR_MS = 365 * 86_400_000
  for (const [maxPauseMs, pauseMs] of [
    [undefined, 3_600_000],
    [Number.POSITIVE_INFINITY, YEAR_MS],
    [YEAR_MS + 1, YEAR_MS],
    [600_000, 600_000],
  ]) {
    await telling([{ status: 429, headers: { 'Retry-After': `${YEAR_MS / 1_000}` } }], async (setting) => {
      const call = setting.with({ maxWaitMs: 300_000, ...(maxPauseMs && { maxPauseMs }) })
      assert.is((await call(setting.url)).status, 429)
      const outcome = await settled(call(setting.url))
      assert.instance((outcome as PromiseRejectedResult).reason, MillraceLimited)
      assertPause(setting.pausedMs(), pauseMs!)
      assert.is(setting.log.length, 1)
    })
  }
})

test('every form of a pause is cut: a quota, a date, and the wait after a 429 that tells nothing', async () => {
  const inAnHour = new Date(Date.now() + 3_600_000).toUTCString()
  for (const told of [
    { status: 429, headers: { 'Retry-After': inAnHour } },
    { status: 200, headers: { 'RateLimit-Remaining': '0', 'RateLimit-Reset': '3600' } },
    { status: 429 },
  ]) {
    await telling([told], async (setting) => {
      await setting.with({ maxPauseMs: 500, retries: 0 })(setting.url)
      assertPause(setting.pausedMs(), 500)
    })
  }
  await telling([{ status: 429 }], async ({ url, pausedMs, with: limited }) => {
    assert.is((await limited({ maxPauseMs: 0 })(url)).status, 200) // sent again at once
    assert.is(pausedMs(), 0)
  })
})

test('a call may wait a year: no timer fires early', () =>
  telling([{ status: 429, headers: { 'Retry-After': `${365 * 86_400}` } }], async (setting) => {
    const { url, clock, log } = setting
    const response = setting.with({ maxPauseMs: Number.POSITIVE_INFINITY })(url)
    await isPaused(setting)
    for (let i = 0; i < 20; i++) await turn()
    assert.is(log.length, 1)
    clock.advance(365 * 86_400_000 + STEP_MS)
    assert.is((await response).status, 200)
  }))

test('a POST is sent again after a 429, and not after a 503: the server may have begun it', async () => {
  const headers = { 'Retry-After': '0' }
  const init = { method: 'POST', body: 'data' }
  await telling([{ status: 429, headers }], async ({ url, log, call }) => {
    assert.is((await call(url, init)).status, 200)
    assert.equal(
      log.map(({ method, body }) => [method, body]),
      [
        ['POST', 'data'],
        ['POST', 'data'],
      ],
    )
  })
  await telling([{ status: 503, headers }], async ({ url, log, call }) => {
    assert.is((await call(url, init)).status, 503)
    assert.is(log.length, 1)
  })
  await telling([{ status: 503, headers }], async ({ url, log, call }) => {
    assert.is((await call(url, { method: 'PUT', body: new URLSearchParams({ a: 'b' }) })).status, 200)
    assert.equal(
      log.map(({ body }) => body),
      ['a=b', 'a=b'],
    )
  })
})

test('a body that is a stream, or of a Request, is sent once', async () => {
  const headers = { 'Retry-After': '0' }
  const stream = () => new Blob(['data']).stream() as ReadableStream
  const calls: ((url: string) => Parameters<typeof fetch>)[] = [
    (url) => [url, { method: 'POST', body: stream(), duplex: 'half' }],
    (url) => [new Request(url, { method: 'POST', body: 'data' })],
  ]
  for (const call of calls) {
    await telling([{ status: 429, headers }], async (setting) => {
      assert.is((await setting.call(...call(setting.url))).status, 429)
      assert.equal(
        setting.log.map(({ body }) => body),
        ['data'],
      )
    })
  }
  await telling([{ status: 429, headers }], async ({ url, call }) => {
    assert.is((await call(new Request(url))).status, 200) // a Request without a body
  })
})

test('retries: as many as told and no more; 0 for none', async () => {
  const answers = Array(5).fill({ status: 429, headers: { 'Retry-After': '0' } })
  for (const retries of [0, 1, 3]) {
    await telling(answers, async (setting) => {
      const response = await setting.with({ retries })(setting.url)
      assert.is(response.status, 429)
      assert.is(await response.text(), 'status 429')
      assert.is(setting.log.length, retries + 1)
    })
  }
})

test("mode 'refuse' pauses the host, but sends nothing again", () =>
  telling([{ status: 429, headers: { 'Retry-After': '30' } }], async (setting) => {
    const call = setting.with({ mode: 'refuse' })
    assert.is((await call(setting.url)).status, 429)
    const outcome = await settled(call(setting.url))
    assert.instance((outcome as PromiseRejectedResult).reason, MillraceLimited)
    assert.is(setting.log.length, 1)
  }))

test('each call that waited for a pause waits its own jitter, for the length of the pause', () =>
  telling([{ status: 200, headers: { 'Retry-After': '30' } }], async (setting) => {
    const pauses: number[] = []
    const call = setting.with({
      jitter: (pauseMs) => {
        pauses.push(pauseMs)
        return 1
      },
    })
    await call(setting.url)
    assert.equal(pauses, [])
    const calls = times(3, () => call(setting.url))
    setting.clock.advance(30_063)
    assert.equal(await statusesOf(calls), [200, 200, 200])
    assert.is(pauses.length, 3)
    for (const pauseMs of pauses) assertPause(pauseMs, 30_000)
    await call(setting.url)
    assert.is(pauses.length, 3)
  }))

test('a call whose jitter has begun does not go when another pause begins', () =>
  telling([{ status: 200, headers: { 'Retry-After': '30' } }], async (setting) => {
    const { url, host, clock, limiter, log } = setting
    let waits = 0
    const call = setting.with({
      jitter: () => {
        if (waits++ === 0) limiter.block(host, '30s')
        return 0
      },
    })
    await call(url)
    const pending = call(url)
    clock.advance(30_063)
    await until(() => waits === 1, 'the jitter')
    for (let i = 0; i < 5; i++) await turn()
    assert.is(log.length, 1)
    clock.advance(30_063)
    assert.is((await pending).status, 200)
    assert.is(waits, 2)
  }))

test('a call that is aborted during its jitter leaves nothing charged', () =>
  telling([{ status: 200, headers: { 'Retry-After': '30' } }], async (setting) => {
    const { url, host, clock, limiter, log } = setting
    const controller = new AbortController()
    let hasBegun = false
    const call = setting.with({
      jitter: () => {
        hasBegun = true
        return 2 ** 31 - 1
      },
    })
    await call(url)
    const pending = settled(call(url, { signal: controller.signal }))
    clock.advance(30_063)
    await until(() => hasBegun, 'the jitter')
    assert.is(limiter.usage(host), 1)
    controller.abort(new Error('enough'))
    assert.is(((await pending) as PromiseRejectedResult).reason.message, 'enough')
    assert.equal([limiter.usage(host), log.length], [0, 1])
  }))

test('a jitter that is no time is an error by name', () =>
  telling([{ status: 429, headers: { 'Retry-After': '1' } }], async (setting) => {
    const pending = settled(setting.with({ jitter: () => -1 })(setting.url))
    await isPaused(setting)
    setting.clock.advance(1_063)
    assert.is(((await pending) as PromiseRejectedResult).reason.code, 'ERR_MILLRACE_INVALID_OPTION')
  }))

test('a client with a larger limit than the server is held by what the server of this project tells', async () => {
  const clock = manualClock(7_000_000)
  const server = createLimiter({ limit: 3, window: '10s', clock })
  const served: number[] = []
  let refused = 0
  const app = express()
  app.use(
    rateLimit({
      limiter: server,
      onLimited: () => {
        refused++
      },
    }),
  )
  app.get('/', (_request, response) => {
    served.push(clock.now())
    response.send('hello\n')
  })
  await withServer(app, async (url) => {
    const limiter = createLimiter({ limit: 100, window: '10s', clock })
    const call = limitedFetch(fetch, { limiter, jitter: () => 0 })
    for (let i = 0; i < 3; i++) assert.is((await call(url)).status, 200)
    const others = times(6, () => call(url))
    for (let i = 0; i < 5; i++) await turn()
    assert.is(served.length, 3)
    await until(() => {
      if (limiter.peek(new URL(url).host, 0).retryAfterMs > 0) clock.advance(1_000)
      return served.length >= 6
    }, 'the next three')
    assert.ok(served[3]! >= served[0]! + 10_000)
    await until(() => {
      clock.advance(1_000)
      return served.length === 9
    }, 'the others')
    assert.equal(await statusesOf(others), Array(6).fill(200))
    assert.ok(refused <= 6, `${refused} refused`)
    await limiter.close()
  })
})

test.run()
