// Bad options, keys and values are errors by name, before anything is charged.
import { Memcache } from 'memcache'
import type { Key } from 'millrace'
import { createMemcachedLimiter } from 'millrace/memcached'
import { test as any } from 'uvu'
import * as assert from 'uvu/assert'
import { blockName, CounterNames, counterName } from '#millrace/memcached/counter-names.js'
import type { Server } from '../redis/process.js'
import { startMemcached } from '../redis/servers.js'
import { memcachedTest as test } from '../redis/skip.js'
import { clientOf, end, Limiters } from './limiters.js'

const RULE = { limit: 5, window: '1m' } as const

/** A client whose node shows something else of itself. */
function withNode(shown: object): Memcache {
  const client = clientOf(1)
  for (const [name, value] of Object.entries(shown)) Object.defineProperty(client.nodes[0]!, name, { value })
  return client
}

const BAD_OPTIONS: readonly (readonly [options: object, option: string])[] = [
  [{ limit: 0 }, 'limit'],
  [{ limit: Number.NaN }, 'limit'],
  [{ limit: 1.5 }, 'limit'],
  [{ limit: '5' }, 'limit'],
  [{ limit: 4_194_303 }, 'limit'],
  [{ window: 0 }, 'window'],
  [{ window: 1.5 }, 'window'],
  [{ window: '400d' }, 'window'],
  [{ granularity: '1s' }, 'granularity'],
  [{ edge: 'smooth' }, 'edge'],
  [{ algorithm: 'sliding-window' }, 'algorithm'],
  [{ algorithm: 'sliding-log' }, 'algorithm'],
  [{ algorithm: 'token-bucket' }, 'algorithm'],
  [{ algorithm: 'fixed-window' }, 'algorithm'],
  [{ algorithm: 'fixed-window', align: 'calendar', period: 'day', window: undefined }, 'algorithm'],
  [{ align: 'calendar', period: 'day', window: undefined }, 'align'],
  [{ algorithm: 'auto' }, 'algorithm'],
  [{ algorithm: null }, 'algorithm'],
  [{ prefix: '' }, 'prefix'],
  [{ prefix: 'a{b}' }, 'prefix'],
  [{ prefix: 7 }, 'prefix'],
  [{ deadline: 0 }, 'deadline'],
  [{ deadline: '2m' }, 'deadline'],
  [{ onOutage: 'maybe' }, 'onOutage'],
  [{ onOutage: 'local' }, 'nodes'],
  [{ onOutage: 'local', nodes: 6 }, 'nodes'],
  [{ nodes: 0 }, 'nodes'],
  [{ maxKeys: 0 }, 'maxKeys'],
  [{ rememberRefusals: 1 }, 'rememberRefusals'],
  [{ clock: {} }, 'options'],
  [{ durability: 'replica' }, 'options'],
  [{ client: undefined }, 'client'],
  [{ client: {} }, 'client'],
  [{ client: 'localhost:11211' }, 'client'],
  [{ client: new Memcache({ nodes: [] }) }, 'client'],
  [
    { client: new Memcache({ nodes: ['localhost:1'], sasl: { username: 'a', password: 'b' } }) },
    'client.nodes',
  ],
  [{ client: withNode({ uri: 'memcaches://localhost:1' }) }, 'client.nodes'],
  [{ rules: [RULE] }, 'limit'],
  [{ limit: undefined, window: undefined, rules: [] }, 'rules'],
  [
    { limit: undefined, window: undefined, rules: [{ ...RULE, algorithm: 'fixed-window' }] },
    'rules[0].algorithm',
  ],
  [{ limit: undefined, window: undefined, rules: [{ ...RULE, other: 1 }] }, 'rules[0]'],
  [{ limit: undefined, window: undefined, rules: [RULE, RULE] }, 'rules[0].name'],
]

for (const [options, option] of BAD_OPTIONS) {
  any(`refused by name: ${option} of ${Object.keys(options).join(', ')}`, () => {
    try {
      createMemcachedLimiter({ client: clientOf(1), prefix: 'test', ...RULE, ...options } as never)
      assert.unreachable()
    } catch (error) {
      const { code, option: named } = error as { code: string; option: string }
      assert.match(code, /^ERR_MILLRACE_INVALID_(OPTION|RULE|DURATION)$/)
      assert.is(named, option)
    }
  })
}

let server: Server
let limiters: Limiters
test.before(async () => {
  server = await startMemcached()
  limiters = new Limiters(server.port)
})
test.after(async () => {
  await limiters?.close()
  if (server) await end(server)
})

test('bad keys and costs charge nothing', async () => {
  const limiter = limiters.timed(RULE)
  for (const [act, code] of [
    [() => limiter.check(''), 'ERR_MILLRACE_INVALID_KEY'],
    [() => limiter.check('x'.repeat(65_537)), 'ERR_MILLRACE_INVALID_KEY'],
    [() => limiter.check(7 as unknown as Key), 'ERR_MILLRACE_INVALID_KEY'],
    [() => limiter.check('key', -1), 'ERR_MILLRACE_INVALID_COST'],
    [() => limiter.check('key', 1.5), 'ERR_MILLRACE_INVALID_COST'],
    [() => limiter.check('key', Number.NaN), 'ERR_MILLRACE_INVALID_COST'],
    [() => limiter.check('key', '1' as never), 'ERR_MILLRACE_INVALID_COST'],
    [() => limiter.check('key', Number.POSITIVE_INFINITY), 'ERR_MILLRACE_INVALID_COST'],
    [() => limiter.checkMany(['key', '']), 'ERR_MILLRACE_INVALID_KEY'],
    [() => limiter.update('default', { window: 1.5 }), 'ERR_MILLRACE_INVALID_RULE'],
    [() => limiter.update('default', { limit: 0 }), 'ERR_MILLRACE_INVALID_RULE'],
  ] as const) {
    const error = await act().catch((reason) => reason)
    assert.is(error.code, code, `${act}`)
  }
  const above = await limiter.check('key', 6)
  assert.equal([above.allowed, above.retryAfterMs], [false, Number.POSITIVE_INFINITY])
  assert.is((await limiters.stats()).curr_items, '0')
})

test('keys of any text count each for itself', async () => {
  const limiter = limiters.timed(RULE)
  const long = 'x'.repeat(65_535)
  const keys = [
    'a\0b',
    'a b',
    ' ',
    '\r\nflush_all\r\n',
    '{a}',
    '\ud800',
    '\ud801',
    'é',
    `${long}a`,
    `${long}b`,
  ]
  for (const key of keys) {
    assert.is((await limiter.check(key, 2)).remaining, 3, key.slice(0, 20))
    assert.is(await limiter.usage(key), 2)
    await limiter.block(key, '1m')
    assert.is(await limiter.unblock(key), true)
  }
})

test('what Memcached cannot do is an error by name', async () => {
  const limiter = limiters.timed(RULE)
  for (const [act, option] of [
    [() => limiter.clearAll(), 'clearAll'],
    [() => limiter.usage('key', '10s'), 'lastMs'],
    [async () => limiter.pack([]), 'pack'],
    [async () => limiter.share(), 'limiter'],
  ] as const) {
    const error = await act().catch((reason) => reason)
    assert.equal([/^ERR_MILLRACE_INVALID_(OPTION|SHARE)$/.test(error.code), error.option], [true, option])
    assert.match(`${error.value}${error.expected}`, /Memcached/)
  }
})

test('values that no limiter has written are errors by name, and charge nothing', async () => {
  const prefix = 'foreign'
  limiters.nowMs += 1
  const limiter = limiters.timed({ ...RULE, prefix })
  const index = Math.floor(limiters.nowMs / 60_000)
  const [base] = new CounterNames(prefix, ['default']).of('key') as [string]
  const current = counterName(base, 60_000, index)
  for (const name of [current, counterName(base, 60_000, index - 1), blockName(base)]) {
    await limiters.tell(`set ${name} 0 0 5\r\nvalue`)
    for (const act of [() => limiter.check('key'), () => limiter.peek('key'), () => limiter.usage('key')]) {
      const error = await act().catch((reason) => reason)
      if (error.code === undefined) assert.is(name, current, 'a check sees the counter by its increment')
      assert.is(error.code, 'ERR_MILLRACE_MEMCACHED_VALUE')
    }
    assert.is(await limiters.value(name), 'value')
    await limiters.tell(`delete ${name}`)
  }
  await limiters.tell(`delete ${current}`)
  assert.is((await limiter.check('key')).remaining, 4)
  assert.is((await limiter.stats()).outages, 0)
})

test.run()
