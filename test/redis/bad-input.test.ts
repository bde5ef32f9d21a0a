// Bad options, keys and values are errors by name, before anything is charged.
import { Redis } from 'ioredis'
import { Redis as Valkey } from 'iovalkey'
import type { Key } from 'millrace'
import { createRedisLimiter } from 'millrace/redis'
import { createClient } from 'redis'
import { test as any } from 'uvu'
import * as assert from 'uvu/assert'
import { ValueVersion } from '#millrace/redis/script-codes.js'
import { KeyNames } from '#millrace/remote/key-names.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

const RULE = { limit: 5, window: '1m' } as const

/** One script decides, so the rules of a limiter are all of its algorithms. */
const MIXED = [
  { name: 'counter', limit: 5, window: '1m', algorithm: 'sliding-counter' },
  { name: 'window', limit: 5, window: '1m' },
]

/** A client that never connects. */
const idle = (options: object = {}) => new Redis(1, '127.0.0.1', { lazyConnect: true, ...options })

const BAD_OPTIONS: readonly (readonly [options: object, option: string])[] = [
  [{ limit: 0 }, 'limit'],
  [{ limit: Number.NaN }, 'limit'],
  [{ limit: 4_194_303 }, 'limit'],
  [{ window: '1m', granularity: '7s' }, 'granularity'],
  [{ window: '1h', granularity: '900ms' }, 'granularity'],
  [{ window: 1.5 }, 'window'],
  [{ window: '400d' }, 'window'],
  [{ edge: 'smooth' }, 'edge'],
  [{ algorithm: 'sliding-log', limit: 4_097 }, 'limit'],
  [{ algorithm: 'sliding-counter', window: 1.5 }, 'window'],
  [{ algorithm: 'sliding-counter', window: '400d' }, 'window'],
  [{ limit: undefined, window: undefined, rules: MIXED }, 'rules[1].algorithm'],
  [{ limit: undefined, window: undefined, rules: MIXED.toReversed() }, 'rules[1].algorithm'],
  [{ prefix: '' }, 'prefix'],
  [{ prefix: 'a{b}' }, 'prefix'],
  [{ prefix: 7 }, 'prefix'],
  [{ deadline: 0 }, 'deadline'],
  [{ deadline: '2m' }, 'deadline'],
  [{ onOutage: 'maybe' }, 'onOutage'],
  [{ onOutage: 'local' }, 'nodes'],
  [{ onOutage: 'local', nodes: 6 }, 'nodes'],
  [{ nodes: 0 }, 'nodes'],
  [{ rememberRefusals: 1 }, 'rememberRefusals'],
  [{ clock: {} }, 'clock'],
  [{ client: {} }, 'client'],
  [{ ownConnection: false }, 'client.options.enableOfflineQueue'],
  [
    { client: idle({ enableOfflineQueue: false }), ownConnection: false },
    'client.options.autoResendUnfulfilledCommands',
  ],
  [
    { client: new Valkey(1, '127.0.0.1', { lazyConnect: true }), ownConnection: false },
    'client.options.enableOfflineQueue',
  ],
  [{ client: createClient(), ownConnection: false }, 'client.options.disableOfflineQueue'],
]

for (const [options, option] of BAD_OPTIONS) {
  any(`refused by name: ${option} of ${Object.keys(options).join(', ')}`, () => {
    const client = idle()
    try {
      createRedisLimiter({ client, prefix: 'test', ...RULE, ...options } as never)
      assert.unreachable()
    } catch (error) {
      const { code, option: named } = error as { code: string; option: string }
      assert.match(code, /^ERR_MILLRACE_INVALID_(OPTION|RULE|DURATION)$/)
      assert.is(named, option)
    }
  })
}

any('different keys have different names, and all rules of a key one slot', () => {
  const keyNames = new KeyNames('api', ['burst', 'a}{b'])
  const long = 'x'.repeat(64)
  const keys = [
    'a',
    '{a}',
    '}',
    '{',
    '%7D',
    '%257D',
    '%h',
    'a\0',
    'é',
    '\ud800',
    '\ud801',
    '\ufffd',
    `${long}a`,
    `${long}b`,
  ]
  const names = keys.flatMap((key) => keyNames.of(key))
  assert.is(new Set(names).size, 2 * keys.length)
  for (const key of keys) {
    const tags = keyNames.of(key).map((name) => /\{(.*?)\}/.exec(name)![1])
    assert.is(tags[0], tags[1])
    assert.ok(tags[0]!.length > 0)
  }
})

test('bad keys and costs charge nothing', async () => {
  const server = await startRedis()
  const client = new Redis(server.port, '127.0.0.1')
  const limiter = createRedisLimiter({ client, prefix: 'test', ...RULE, deadline: '1m' })
  try {
    await limiter.ready()
    for (const [act, code] of [
      [() => limiter.check(''), 'ERR_MILLRACE_INVALID_KEY'],
      [() => limiter.check('x'.repeat(65_537)), 'ERR_MILLRACE_INVALID_KEY'],
      [() => limiter.check(7 as unknown as Key), 'ERR_MILLRACE_INVALID_KEY'],
      [() => limiter.check('key', -1), 'ERR_MILLRACE_INVALID_COST'],
      [() => limiter.check('key', 1.5), 'ERR_MILLRACE_INVALID_COST'],
      [() => limiter.check('key', '1' as never), 'ERR_MILLRACE_INVALID_COST'],
      [() => limiter.check('key', Number.POSITIVE_INFINITY), 'ERR_MILLRACE_INVALID_COST'],
      [() => limiter.checkMany(['key', '']), 'ERR_MILLRACE_INVALID_KEY'],
      [() => limiter.update('default', { window: 1.5 }), 'ERR_MILLRACE_INVALID_RULE'],
    ] as const) {
      const error = await act().catch((reason) => reason)
      assert.is(error.code, code, `${act}`)
    }
    const above = await limiter.check('key', 6)
    assert.equal([above.allowed, above.retryAfterMs], [false, Number.POSITIVE_INFINITY])
    assert.is(await client.dbsize(), 0)
    for (const key of ['a\0b', '{a}', '\ud800', 'x'.repeat(65_536)]) {
      assert.is((await limiter.check(key, 2)).remaining, 3)
      assert.is(await limiter.usage(key), 2)
    }
  } finally {
    await limiter.close()
    client.disconnect()
    await server.stop()
  }
})

/** A value of strict limiters with version 1: version, shape, birth, newest granule, its units, all units; an older granule. */
function ofOldLayout(shape: Buffer): Buffer {
  const value = Buffer.alloc(27)
  value[0] = 1
  shape.copy(value, 1)
  for (const at of [3, 9]) value.writeUIntBE(Date.now(), at, 6)
  for (const at of [15, 18]) value.writeUIntBE(1, at, 3)
  return value
}

test('values that no such limiter has written are errors by name, and stay as they are', async () => {
  const server = await startRedis()
  const client = new Redis(server.port, '127.0.0.1')
  const limiter = createRedisLimiter({ client, prefix: 'test', ...RULE, deadline: '1m' })
  const other = createRedisLimiter({ client, prefix: 'test', ...RULE, window: '2m', deadline: '1m' })
  const [name] = new KeyNames('test', ['default']).of('key') as [string]
  try {
    await limiter.ready()
    await limiter.check('key')
    const value = await client.getBuffer(name)
    const ofVersion = (version: number) => Buffer.concat([value!.subarray(0, -1), Buffer.of(version)])
    for (const [kind, write] of [
      ['another window', () => client.del(name).then(() => other.check('key'))],
      ['damaged', () => client.set(name, value!.subarray(0, 20))],
      ['damaged', () => client.set(name, ofVersion(ValueVersion.NARROW_BLOCKED))], // it has no block
      ['version', () => client.set(name, ofVersion(99))],
      ['version', () => client.set(name, ofOldLayout(value!.subarray(-4, -2)))],
      ['another window', () => client.set(name, ofOldLayout(Buffer.from('??')))],
      ['type', () => client.del(name).then(() => client.rpush(name, 'a'))],
    ] as const) {
      await write()
      const before = await client.dump(name)
      for (const act of [
        () => limiter.check('key'),
        () => limiter.checkMany(['other', 'key']),
        () => limiter.usage('key'),
      ]) {
        const error = await act().catch((reason) => reason)
        assert.is(error.code, 'ERR_MILLRACE_REDIS_VALUE', kind)
        assert.match(`${error.value}`, kind, error.message)
      }
      assert.equal(await client.dump(name), before, kind)
    }
    await client.del(name)
    await client.set(name, 'a text of someone else, 33 bytes..')
    await limiter.clearAll()
    assert.ok((await limiter.check('key')).allowed, 'clearAll removes what is no value')
  } finally {
    await limiter.close()
    await other.close()
    client.disconnect()
    await server.stop()
  }
})

test('a key expires when nothing of it counts any more', async () => {
  const server = await startRedis()
  const client = new Redis(server.port, '127.0.0.1')
  const rules = [
    { name: 'sliding', limit: 5, window: 60, granularity: 10 },
    { name: 'fixed', limit: 5, window: 60, algorithm: 'fixed-window' },
    { name: 'bucket', limit: 5, window: 60, algorithm: 'token-bucket' },
  ] as const
  const limiter = createRedisLimiter({ client, prefix: 'test', rules, deadline: '1m' })
  try {
    await limiter.check('key', 3)
    assert.ok((await client.dbsize()) > 0)
    while ((await client.dbsize()) > 0) await new Promise((resolve) => setTimeout(resolve, 10))
    assert.is(await limiter.usage('key'), 0)
  } finally {
    await limiter.close()
    client.disconnect()
    await server.stop()
  }
})

test.run()
