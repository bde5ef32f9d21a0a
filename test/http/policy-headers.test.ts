// The RateLimit headers of limiters with a configuration store: those of the policy that the key has.
import { Redis } from 'ioredis'
import { type AsyncLimiter, createLimiter, type Limiter, type MillraceError, type Policy } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { type NodeRequest, rateLimit } from 'millrace/http'
import { createRedisLimiter } from 'millrace/redis'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Standard } from '#millrace/http/headers/headers.js'
import { FakeStore, stored } from '../config/fake-store.js'
import { startRedis } from '../redis/servers.js'
import { redisTest } from '../redis/skip.js'
import { createHttp1, listen, shut } from './serve.js'

const POLICIES: Record<string, Policy> = {
  hourly: { limit: 3, window: '1h' },
  larger: { limit: 7, window: '1m' },
  named: { limit: 3, window: '10s', name: 'mine' },
  bucket: { limit: 10, window: '1s', burst: 50, algorithm: 'token-bucket' },
  several: {
    rules: [
      { name: 'burst', limit: 3, window: '1s' },
      { name: 'minute', limit: 20, window: '1m' },
    ],
  },
  tried: {
    rules: [
      { name: 'new', limit: 2, window: '1s', shadow: true },
      { name: 'old', limit: 5, window: '2m' },
    ],
  },
}
const ONE: Policy = { limit: 100, window: '1m' }
const TWO: Policy = {
  rules: [
    { name: 'second', limit: 10, window: '1s' },
    { name: 'day', limit: 1_000, window: '1d', granularity: '1h' },
  ],
}

/** The value of RateLimit-Policy by the key. */
const STRUCTURED = {
  other: '"default";q=100;w=60',
  hourly: '"default";q=3;w=3600',
  larger: '"default";q=7;w=60',
  named: '"mine";q=3;w=10',
  bucket: '"default";q=50;w=5',
  several: '"burst";q=3;w=1, "minute";q=20;w=60',
  tried: '"old";q=5;w=120',
}
const SHORT = {
  other: '100;w=60',
  hourly: '3;w=3600',
  larger: '7;w=60',
  named: '3;w=10',
  bucket: '50;w=5',
  several: '3;w=1',
  tried: '5;w=120',
}

type Make = (options: { config: ReturnType<typeof memoryConfig>; default: Policy }) => Limiter | AsyncLimiter

/** Serves by a limiter with the policies. `ask` sends a request of a key. */
async function serving(
  make: Make,
  standard: Standard,
  byDefault: Policy,
  use: (ask: (key: string) => Promise<Response>, config: ReturnType<typeof memoryConfig>) => Promise<void>,
): Promise<void> {
  const config = memoryConfig(POLICIES)
  const limiter = make({ config, default: byDefault })
  const errors: unknown[] = []
  const limited = rateLimit({
    limiter,
    standard,
    key: ({ headers }: NodeRequest) => headers['x-key'] as string,
    onError(error) {
      errors.push(error)
      return 'fail'
    },
  })
  const server = createHttp1((request, response) => limited(request, response, () => void response.end()))
  const url = await listen(server)
  try {
    await use((key) => fetch(url, { headers: { 'x-key': key } }), config)
  } finally {
    await shut(server)
    await limiter.close()
  }
  assert.equal(errors, [])
}

/** Requests of all keys in turn show their own policies. */
async function showsPolicies(make: Make, standard: Standard, expected: Record<string, string>) {
  await serving(make, standard, ONE, async (ask) => {
    for (let i = 0; i < 2; i++) {
      for (const [key, policy] of Object.entries(expected)) {
        const { status, headers } = await ask(key)
        assert.equal([status, headers.get('ratelimit-policy')], [200, policy], key)
      }
    }
  })
}

const inline: Make = (options) => createLimiter({ ...options, maxKeys: 100 })

for (const standard of ['draft-11', 'draft-10', 'draft-8'] as const)
  test(`${standard}: items of the key's policy`, () => showsPolicies(inline, standard, STRUCTURED))
for (const standard of ['draft-7', 'draft-6'] as const)
  test(`${standard}: the limit and the window of the key's policy`, () =>
    showsPolicies(inline, standard, SHORT))

test('x-ratelimit: the limit of the policy, and no rule with the option shadow', () =>
  serving(inline, 'x-ratelimit', ONE, async (ask) => {
    for (const [key, limit] of [
      ['several', '3'],
      ['tried', '5'],
      ['other', '100'],
    ] as const) {
      const { headers } = await ask(key)
      assert.is(headers.get('x-ratelimit-limit'), limit)
      assert.is(headers.get('x-ratelimit-remaining'), `${Number(limit) - 1}`)
    }
  }))

for (const standard of ['draft-11', 'draft-7'] as const) {
  test(`${standard}: a default of several rules, and policies of one`, () =>
    serving(inline, standard, TWO, async (ask) => {
      const isStructured = standard === 'draft-11'
      const expected = isStructured ? STRUCTURED.hourly : SHORT.hourly
      const own = isStructured ? '"second";q=10;w=1, "day";q=1000;w=86400' : '10;w=1'
      for (const [key, policy] of [
        ['hourly', expected],
        ['other', own],
        ['hourly', expected],
      ] as const) {
        assert.is((await ask(key)).headers.get('ratelimit-policy'), policy)
      }
    }))
}

test('a refusal shows the rule of the policy', () =>
  serving(inline, 'draft-11', ONE, async (ask) => {
    for (let i = 0; i < 3; i++) assert.is((await ask('hourly')).status, 200)
    const { status, headers } = await ask('hourly')
    assert.is(status, 429)
    assert.is(headers.get('ratelimit-policy'), STRUCTURED.hourly)
    assert.match(headers.get('ratelimit')!, /^"default";r=0;t=3\d{3}$/)
  }))

test('a policy that changes shows its new window at once', () =>
  serving(inline, 'draft-11', ONE, async (ask, config) => {
    const shown = async () => (await ask('hourly')).headers.get('ratelimit-policy')
    assert.is(await shown(), STRUCTURED.hourly)
    await config.put('hourly', { limit: 4, window: '2h' })
    assert.is(await shown(), '"default";q=4;w=7200')
    await config.delete('hourly')
    assert.is(await shown(), STRUCTURED.other)
  }))

test('a policy with a name that no header can hold does not fail its requests', () =>
  serving(inline, 'draft-11', ONE, async (ask, config) => {
    await config.put('user', { limit: 4, window: '2h', name: 'Zoë 😀' })
    const { status, headers } = await ask('user')
    assert.equal([status, headers.get('ratelimit-policy')], [200, '"Zo? ?";q=4;w=7200'])
  }))

test("a pool: items of the key's policy", () =>
  showsPolicies(
    (options) =>
      createLimiter({ ...options, maxKeys: 100, engine: 'pool', pool: { minThreads: 1, maxThreads: 1 } }),
    'draft-11',
    STRUCTURED,
  ))

redisTest("Redis: items of the key's policy", async () => {
  const server = await startRedis()
  const client = new Redis(server.port, '127.0.0.1', { lazyConnect: true })
  const make: Make = (options) => createRedisLimiter({ client, prefix: 'http', deadline: '1m', ...options })
  try {
    await showsPolicies(make, 'draft-11', STRUCTURED)
    await client.flushall()
    await showsPolicies(make, 'draft-7', SHORT)
  } finally {
    client.disconnect()
    await server.stop()
  }
})

test('while a policy is not known, a refusal by the store shows none; then the policy is shown', async () => {
  const store = new FakeStore()
  const limiter = createLimiter({ config: store, default: ONE, maxKeys: 100, onMiss: 'refuse' })
  const codes: unknown[] = []
  const limited = rateLimit({
    limiter,
    key: () => 'hourly',
    onError(error) {
      codes.push((error as MillraceError).code)
      return 'fail'
    },
  })
  const server = createHttp1((request, response) => limited(request, response, () => void response.end()))
  const url = await listen(server)
  const shown = async () => {
    const { status, headers } = await fetch(url)
    return [status, headers.get('ratelimit-policy')]
  }
  try {
    assert.equal(await shown(), [503, null])
    await store.answer(stored('hourly', POLICIES.hourly!))
    assert.equal(await shown(), [200, STRUCTURED.hourly])
  } finally {
    await shut(server)
    await limiter.close()
  }
  assert.equal(codes, ['ERR_MILLRACE_CONFIG_STORE'])
})

test.run()
