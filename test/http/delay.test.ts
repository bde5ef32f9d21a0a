// run: also-full, own
// The option `delay`: how long requests wait, how many, and what is refused all the same. And `ban`, whose window
// and time are those of the key.
import { createLimiter, type Limiter, manualClock } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { rateLimit } from 'millrace/http'
import { suite, test } from 'uvu'
import * as assert from 'uvu/assert'
import { until } from '../limiter/support.js'
import { refusesBlocked, serving } from './blocked.js'
import { type AnyOptions, http1Client } from './driver.js'
import { allDrivers } from './drivers.js'
import { nodeDriver } from './node-driver.js'

const STEP_MS = 777_000
const DAY_MS = 86_400_000
/** The longest timer of Node.js. */
const LONGEST_MS = 2 ** 31 - 1

const timeouts = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length

/** Lets long timers fire at once. Returns their milliseconds. */
async function withoutWaiting(use: () => Promise<void>): Promise<number[]> {
  const own = globalThis.setTimeout
  const waits: number[] = []
  const patched = (call: () => void, ms = 0, ...rest: unknown[]) => {
    if (ms < STEP_MS) return own(call, ms, ...(rest as []))
    waits.push(ms)
    return own(call, 0)
  }
  globalThis.setTimeout = Object.assign(patched, own) as unknown as typeof setTimeout
  try {
    await use()
  } finally {
    globalThis.setTimeout = own
  }
  return waits
}

for (const driver of allDrivers) {
  const frameworkTest = suite(driver.name)
  const { client = http1Client } = driver
  const get = (url: string, key = 'all') => client.fetch(url, { method: 'GET', headers: { 'x-key': key } })
  const byHeader = (request: unknown) => driver.header(request, 'x-key') ?? 'none'
  const base = () => ({ window: '1m', clock: manualClock(1e9), key: byHeader })

  frameworkTest('the waits grow beyond the limit, up to max', async () => {
    const delay = { after: 2, ms: STEP_MS, max: 6.5 * STEP_MS }
    const waits = await withoutWaiting(() =>
      serving(driver, { ...base(), limit: 4, delay }, async ({ url, reset }) => {
        for (let i = 0; i < 11; i++) assert.is((await get(url)).status, 200)
        await reset('all')
        for (let i = 0; i < 3; i++) await get(url)
      }),
    )
    assert.equal(
      waits.map((ms) => ms / STEP_MS),
      [1, 2, 3, 4, 5, 6, 6.5, 6.5, 6.5, 1],
    )
  })

  frameworkTest(
    'refuses what waits beyond maxDelayed, of a key and in all, and gives its charge back',
    async () => {
      const limiter = createLimiter({ limit: 5, window: '1m', clock: manualClock(1e9) })
      let arrived = 0
      const key = (request: unknown) => {
        arrived++
        return byHeader(request)
      }
      const delay = { after: 0, ms: '1h', max: '1h', maxDelayed: { key: 2, all: 3 } }
      await serving(driver, { limiter, key, delay }, async ({ url }) => {
        const before = timeouts()
        const closes = ['a', 'a', 'b'].map((name) => client.open(url, { 'x-key': name }))
        await until(() => arrived === 3, 'three that wait')
        for (const [name, left] of [
          ['a', 3],
          ['c', 5],
        ] as const) {
          const response = await get(url, name)
          assert.is(response.status, 429)
          assert.is(response.headers.get('retry-after'), '3600')
          assert.match(await response.text(), /quota-exceeded/)
          assert.is(limiter.peek(name, 0).remaining, left)
        }
        await Promise.all(closes.map((close) => close()))
        await until(() => timeouts() <= before, 'the end of their timers')
        const next = client.open(url, { 'x-key': 'a' })
        await until(() => arrived === 6 && timeouts() > before, 'one that waits at the free place')
        await next()
      })
      await limiter.close()
    },
  )

  frameworkTest('ban and delay do not go together', async () => {
    const options = { ...base(), limit: 1, delay: { after: 0, ms: 1 }, ban: { after: 1, for: '1h' } }
    let code: unknown
    try {
      await (await driver.serve(options as AnyOptions)).close()
    } catch (error) {
      code = (error as { code?: unknown }).code
    }
    assert.is(code, 'ERR_MILLRACE_INVALID_OPTION')
  })

  for (const [time, retryAfter] of [
    ['1h', '3600'],
    [Number.POSITIVE_INFINITY, null],
  ] as const) {
    frameworkTest(`the refusal that begins a ban for ${time} tells its time`, async () =>
      serving(driver, { ...base(), limit: 1, ban: { after: 2, for: time } }, async ({ url }) => {
        await get(url)
        assert.is((await get(url)).headers.get('retry-after'), '61')
        const begins = await get(url)
        assert.is(begins.status, 429)
        const later = await get(url)
        assert.is(later.status, 403)
        for (const name of ['retry-after', 'ratelimit'])
          assert.is(begins.headers.get(name), later.headers.get(name), name)
        assert.is(begins.headers.get('retry-after'), retryAfter)
        const { detail } = (await begins.json()) as { detail: string }
        assert.match(detail, time === '1h' ? '3600' : 'however late')
      }),
    )
  }
  frameworkTest.run()
}

test('a wait may be longer than a timer', async () => {
  const waits = await withoutWaiting(() =>
    serving(
      nodeDriver,
      { limit: 1, window: '1m', delay: { after: 0, ms: '60d', max: '100d' } },
      async ({ url }) => {
        for (let i = 0; i < 2; i++) assert.is((await fetch(url)).status, 200)
      },
    ),
  )
  const rest = (days: number, parts: number) => days * DAY_MS - parts * LONGEST_MS
  assert.equal(waits, [LONGEST_MS, LONGEST_MS, rest(60, 2), ...Array(4).fill(LONGEST_MS), rest(100, 4)])
})

const RULES = {
  'sliding-window': {},
  'sliding-log': { algorithm: 'sliding-log' },
  'fixed-window': { algorithm: 'fixed-window' },
  'token-bucket': { algorithm: 'token-bucket' },
} as const

for (const [algorithm, rule] of Object.entries(RULES)) {
  for (const engine of ['inline', 'pool'] as const) {
    test(`${algorithm}, ${engine}: blocked is refused, and so is what can never be admitted`, async () => {
      const pool = engine === 'pool' ? { pool: { maxThreads: 1 } } : {}
      const limiter = createLimiter({
        limit: 2,
        window: '1m',
        ...rule,
        engine,
        ...pool,
      } as Parameters<typeof createLimiter>[0]) as Limiter
      await refusesBlocked(nodeDriver, limiter)
      await limiter.close()
    })
  }
}

test('refusals count in the window of the key: that of its policy', async () => {
  const clock = manualClock(1e9)
  const config = memoryConfig({ slow: { limit: 1, window: '1h' }, quick: { limit: 1, window: '1s' } })
  const limiter = createLimiter({ config, default: { limit: 1, window: '1m' }, clock })
  const statuses: Record<string, number[]> = {}
  for (const [key, pauseMs] of [
    ['slow', 600_000],
    ['quick', 3_000],
    ['other', 120_000],
  ] as const) {
    const limited = rateLimit({ limiter, clock, key: () => key, ban: { after: 2, for: '1h' } })
    const ask = () => {
      let status = 200
      const response = {
        setHeader() {},
        getHeader() {},
        end() {
          status = this.statusCode
        },
        statusCode: 200,
      }
      const request = { url: '/', headers: {}, socket: { remoteAddress: '127.0.0.1' } }
      limited(request as never, response as never, () => {})
      return status
    }
    ask()
    assert.is(ask(), 429)
    clock.advance(pauseMs)
    statuses[key] = [ask(), ask(), ask()]
    await limited.close()
  }
  assert.equal(statuses, { slow: [429, 403, 403], quick: [200, 429, 429], other: [200, 429, 429] })
  await limiter.close()
})

test.run()
