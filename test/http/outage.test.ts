// run: also-full
// Limiters on Redis while it does not answer: what clients see, and who is told. Nothing listens on the port.
import { Redis } from 'ioredis'
import { createLimiter, type Decision, MillraceError, manualClock } from 'millrace'
import { createRedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import { type AnyOptions, http1Client, type Served } from './driver.js'
import { allDrivers } from './drivers.js'

const CLOSED_PORT = 1
/** All names that any form of the headers has, and that of a refusal. */
const SHOWN = /ratelimit|retry-after|access-control-expose-headers/

type RedisMade = ReturnType<typeof createRedisLimiter>

/** Hands out a limiter of 2 an hour whose Redis does not answer. */
async function withoutRedis(
  options: Partial<RedisLimiterOptions>,
  use: (limiter: RedisMade) => Promise<void>,
): Promise<void> {
  const client = new Redis(CLOSED_PORT, '127.0.0.1', { lazyConnect: true })
  const limiter = createRedisLimiter({
    client,
    prefix: 'test',
    limit: 2,
    window: '1h',
    deadline: '5ms',
    ...options,
  })
  try {
    await use(limiter)
  } finally {
    await limiter.close()
    client.disconnect()
  }
}

const throwing = () => {
  throw new Error('not to be called')
}

for (const driver of allDrivers) {
  const test = suite(driver.name)
  const { client = http1Client } = driver
  const key = () => 'all'
  const get = (url: string, headers = {}, path = '/', method = 'GET') =>
    client.fetch(url + path, { method, headers })

  /** The headers of a response about limits, by their names. */
  const shown = (response: Response): Record<string, string> =>
    Object.fromEntries([...response.headers].filter(([name]) => SHOWN.test(name)))

  /** Serves by a chain of options. Returns the codes of the errors that `onError` was given. */
  const serving = async (
    chain: readonly object[],
    use: (served: Served) => Promise<void>,
    answer: 'pass' | 'fail' = 'fail',
  ): Promise<unknown[]> => {
    const codes: unknown[] = []
    const onError = (error: unknown) => {
      codes.push(error instanceof MillraceError ? error.code : error)
      return answer
    }
    const served = await driver.serve(...chain.map((options) => ({ key, onError, ...options }) as AnyOptions))
    try {
      await use(served)
    } finally {
      await served.close()
    }
    return codes
  }

  test('a refusal is answered 503, not 429, and says that the store does not answer', () =>
    withoutRedis({}, async (limiter) => {
      const codes = await serving([{ limiter }], async ({ url }) => {
        const response = await get(url)
        assert.is(response.status, 503)
        assert.equal(shown(response), { 'retry-after': '1' })
        assert.match(response.headers.get('content-type')!, 'application/problem+json')
        assert.equal(JSON.parse(await response.text()), {
          type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
          title: 'Temporary Reduced Capacity',
          status: 503,
          detail: 'The store of the rate limiter does not answer. Retry after 1 second.',
        })
        const text = await get(url, { accept: 'text/plain' })
        assert.match(
          await text.text(),
          /^Temporary Reduced Capacity\. The store of the rate limiter does not/,
        )
      })
      assert.equal(codes, ['ERR_MILLRACE_OUTAGE', 'ERR_MILLRACE_OUTAGE'])
    }))

  test('the error that onError is given has its cause', () =>
    withoutRedis({}, async (limiter) => {
      let cause: unknown
      const onError = (error: unknown) => {
        cause = (error as Error).cause
        return 'fail'
      }
      const isRefused = () => cause instanceof Error && cause.message === 'connect ECONNREFUSED 127.0.0.1:1'
      await serving([{ limiter, onError }], async ({ url }) => {
        await poll(async () => (await get(url)).status === 503 && isRefused(), 'a refused connection')
      })
    }))

  test('no form of the headers shows a limit, and other origins may read Retry-After', () =>
    withoutRedis({}, async (limiter) => {
      for (const standard of ['draft-11', 'draft-7', 'draft-6', 'x-ratelimit', false] as const) {
        await serving([{ limiter, standard, exposeHeaders: true }], async ({ url }) => {
          const { 'access-control-expose-headers': exposed, ...others } = shown(await get(url))
          assert.equal(others, { 'retry-after': '1' })
          assert.match(exposed!, 'Retry-After')
        })
      }
    }))

  test('it is no request over the limit: onLimited, handler, message, statusCode, ban and delay do not act', () =>
    withoutRedis({}, async (limiter) => {
      const options = {
        onLimited: throwing,
        handler: throwing,
        message: throwing,
        statusCode: 420,
      }
      const delay = { after: 0, ms: 1 }
      const codes = await serving([{ limiter, ...options, delay }], async ({ url }) => {
        for (let i = 0; i < 3; i++) assert.is((await get(url)).status, 503)
      })
      assert.equal(codes, Array(3).fill('ERR_MILLRACE_OUTAGE'))
      await serving([{ limiter, ...options, ban: { after: 1, for: '1h' } }], async ({ url }) => {
        for (let i = 0; i < 3; i++) assert.is((await get(url)).status, 503)
      })
    }))

  test('onError and shadow pass the request on, without headers and without delay', () =>
    withoutRedis({}, async (limiter) => {
      const delay = { after: 0, ms: '1h', max: '1h' }
      for (const [options, answer] of [
        [{ delay }, 'pass'],
        [{ shadow: true, onLimited: throwing, exposeHeaders: true }, 'fail'],
      ] as const) {
        const use = async ({ url }: Served) => {
          const response = await get(url, {}, '/decision')
          assert.is(response.status, 200)
          assert.equal(shown(response), {})
          const { allowed, source } = (await response.json()) as Decision
          assert.equal([allowed, source], [false, 'outage'])
        }
        const codes = await serving([{ limiter, ...options }], use, answer)
        assert.equal(codes, ['ERR_MILLRACE_OUTAGE'])
      }
      await serving([{ limiter, onError: 'pass' }], async ({ url }) => {
        const warned = new Promise<Error & { code?: string }>((resolve) => process.once('warning', resolve))
        assert.is((await get(url)).status, 200)
        const { code, message } = await warned
        assert.is(code, 'MILLRACE_UNDECIDED')
        assert.match(message, 'a store that answers before the deadline')
      })
    }))

  test('open: requests pass, no header shows a count, and nothing is given back', () =>
    withoutRedis({ onOutage: 'open' }, async (limiter) => {
      const options = { countIf: throwing, delay: { after: 0, ms: '1h' }, exposeHeaders: true }
      const codes = await serving([{ limiter, ...options }], async ({ url }) => {
        for (let i = 0; i < 4; i++) {
          const response = await get(url, {}, '/decision')
          assert.is(response.status, 200)
          assert.equal(shown(response), {})
          assert.is(((await response.json()) as Decision).source, 'outage')
        }
      })
      assert.equal(codes, [])
    }))

  test('local: the figures are those of a share, shown and enforced as always', () =>
    withoutRedis({ onOutage: 'local', nodes: 1 }, async (limiter) => {
      const told: unknown[] = []
      const onLimited = (_: unknown, { source }: Decision) => void told.push(source)
      const codes = await serving([{ limiter, onLimited }], async ({ url }) => {
        for (const [status, left] of [
          [200, 1],
          [200, 0],
          [429, 0],
        ]) {
          const response = await get(url)
          assert.is(response.status, status)
          assert.match(response.headers.get('ratelimit')!, `"default";r=${left};t=`)
        }
      })
      assert.equal([codes, told], [[], ['local']])
    }))

  for (const onOutage of ['closed', 'open'] as const) {
    test(`${onOutage}: the headers of another limiter of the chain stay`, () =>
      withoutRedis({ onOutage }, async (limiter) => {
        const memory = { name: 'memory', limit: 5, window: '1m', clock: manualClock(1e9) }
        const status = onOutage === 'open' ? 200 : 503
        for (const chain of [
          [memory, { limiter }],
          [{ limiter }, memory],
        ]) {
          await serving(chain, async ({ url }) => {
            const response = await get(url)
            assert.is(response.status, status)
            const isReached = onOutage === 'open' || chain[0] === memory
            assert.is(response.headers.get('ratelimit'), isReached ? '"memory";r=4;t=61' : null)
          })
        }
      }))
  }

  test('a ban is set by refusals of the limit, also if the store stops to answer after one', () =>
    withoutRedis({}, async (lost) => {
      const limiter = createLimiter({ limit: 1, window: '1h', maxKeys: 20 })
      const losing = new Proxy(limiter, {
        get(target, name) {
          const owner = name === 'peek' ? lost : target
          const value: unknown = Reflect.get(owner, name, owner)
          return typeof value === 'function' ? value.bind(owner) : value
        },
      })
      await serving([{ limiter: losing, ban: { after: 2, for: '2h' } }], async ({ url }) => {
        const statuses = []
        for (let i = 0; i < 3; i++) statuses.push((await get(url)).status)
        assert.equal(statuses, [200, 429, 429])
        assert.ok(limiter.peek('all', 0).retryAfterMs > 3_600_000)
      })
      await limiter.close()
    }))

  test.run()
}
