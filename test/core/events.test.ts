// run: own, typescript
// What is published on `node:diagnostics_channel`, and that keys, which clients write, are inert in it.
import { createHmac } from 'node:crypto'
import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createLimiter, group, manualClock, setEventOptions } from 'millrace'
import { createBackendLimiter, type Values } from 'millrace/backend'
import { memoryConfig } from 'millrace/config/memory'
import { rateLimit } from 'millrace/http'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { withServer } from '../fetch/support.js'
import { assertRaises } from '../limiter/support.js'

type Message = Record<string, unknown>

/** Returns what a channel publishes while `act` runs. */
async function heard(name: string, act: () => unknown): Promise<Message[]> {
  const messages: Message[] = []
  const hear = (message: unknown) => messages.push(message as Message)
  subscribe(name, hear)
  try {
    await act()
    await Promise.resolve()
  } finally {
    unsubscribe(name, hear)
  }
  return messages
}

const MINUTE = { limit: 1, window: '1m', name: 'minute' } as const
const clock = () => manualClock(1e6)
const limiterOf = (options: object = {}) => createLimiter({ ...MINUTE, clock: clock(), ...options })
const textsOf = (messages: Message[]) => messages.map(({ rule, key }) => [rule, key])

test('nothing is published where nobody has subscribed, and a refusal is the same', () => {
  const limiter = limiterOf()
  limiter.check('key')
  assert.is(channel('millrace:limited').hasSubscribers, false)
  assert.is(limiter.check('key').allowed, false)
})

test('a refusal is published with its rule and key, by each method that decides', async () => {
  const several = {
    rules: [MINUTE, { ...MINUTE, name: 'second', limit: 2 }],
    limit: undefined,
    window: undefined,
    name: undefined,
  }
  for (const limiter of [
    limiterOf(),
    limiterOf({ unit: 1, limit: 1 }),
    createLimiter({ rules: several.rules, clock: clock() }),
  ]) {
    limiter.check('key')
    const messages = await heard('millrace:limited', () => {
      limiter.check('key')
      limiter.check('key', 1, { limit: limiter.rules.length === 1 ? 1 : { minute: 1 } } as never)
      limiter.check(limiter.handle('key'))
      limiter.reserve('key', 1)
      limiter.checkMany(['key', 'other'])
      assert.throws(() => limiter.checkOrThrow('key'))
      limiter.peek('key')
      limiter.check('admitted')
    })
    assert.equal(textsOf(messages), [
      ['minute', 'key'],
      ['minute', 'key'],
      ['minute', undefined],
      ['minute', 'key'],
      ['minute', 'key'],
      ['minute', 'key'],
    ])
    assert.equal([messages[0]!.limit, (messages[0]!.retryAfterMs! as number) > 0], [1, true])
  }
})

test('a refusal of a blocked key is published as one, once, also by a pool and a group', async () => {
  const pool = createLimiter({ ...MINUTE, engine: 'pool', pool: { maxThreads: 1 } })
  const [inline, member] = [limiterOf(), limiterOf()]
  for (const limiter of [inline, pool, member]) await limiter.block('key', '1h')
  const both = group({ member, pool })
  const checks = [
    ['minute', () => inline.check('key')],
    ['minute', () => pool.check('key')],
    ['pool', () => both.check({ member: 'other', pool: 'key' })],
  ] as const
  for (const [rule, check] of checks) {
    const limited: Message[] = []
    const blocked = await heard('millrace:blocked', async () => {
      limited.push(...(await heard('millrace:limited', check)))
    })
    assert.equal([textsOf(blocked), limited], [[[rule, 'key']], []])
  }
  await pool.close()
})

test('a block that has ended blocks no more, though the key is refused', async () => {
  const clock = manualClock(1e6)
  const limiter = createLimiter({ ...MINUTE, clock })
  limiter.block('key', '1s')
  clock.advance(2_000)
  const blocked = await heard('millrace:blocked', () => limiter.check('key', 2)) // more than the limit
  assert.equal([blocked, limiter.stats().own.blocked, limiter.stats().own.refused], [[], 0, 1])
})

test('decisions of a pool are published by the calling thread', async () => {
  const limiter = createLimiter({ ...MINUTE, engine: 'pool', pool: { maxThreads: 1 } })
  await limiter.check('key')
  const messages = await heard('millrace:limited', async () => {
    await limiter.check('key')
    await limiter.checkMany(['key'])
    await limiter.peek('key')
  })
  assert.equal(textsOf(messages), [
    ['minute', 'key'],
    ['minute', 'key'],
  ])
  await limiter.close()
})

test('a group names the member that refused, and its key', async () => {
  const both = group({ account: limiterOf(), address: limiterOf({ limit: 5 }) })
  both.check({ account: 'a', address: '1' })
  const messages = await heard('millrace:limited', () => both.check({ account: 'a', address: '1' }))
  assert.equal(textsOf(messages), [['account', 'a']])
})

test('outages are published once each, and no refusal because of them', async () => {
  let isDown = false
  let nowMs = 1
  const values: Values = {
    read: (keys) => (isDown ? Promise.reject(new Error('down')) : Promise.resolve(keys.map(() => undefined))),
    swap: async () => true,
  }
  const own = { ...MINUTE, values, source: 'own', prefix: 'events', testTime: () => nowMs }
  const limiter = createBackendLimiter(own)
  const all: [string, Message][] = []
  const stop = ['limited', 'outage', 'recovered'].map((name) => {
    const hear = (message: unknown) => void all.push([name, message as Message])
    subscribe(`millrace:${name}`, hear)
    return () => unsubscribe(`millrace:${name}`, hear)
  })
  isDown = true
  for (let i = 0; i < 3; i++) await limiter.check('key')
  isDown = false
  nowMs += 1_000
  await limiter.ready()
  assert.is((await limiter.check('other')).source, 'own')
  for (const end of stop) end()
  assert.equal(
    all.map(([name, { state, prefix, policy }]) => [name, state, prefix, policy]),
    [
      ['outage', 'outage', 'events', 'closed'],
      ['recovered', 'recovered', 'events', 'closed'],
    ],
  )
  await limiter.close()
})

test('a change of a rule is published, and one of the policy of a key', async () => {
  const limiter = limiterOf()
  const updates = await heard('millrace:policy-changed', () => limiter.update('minute', { limit: 7 }))
  assert.equal(updates, [{ rule: 'minute', key: undefined, limit: 7 }])
  const config = memoryConfig()
  const configured = createLimiter({ config, default: { limit: 1, window: '1m' } })
  const first = await heard('millrace:policy-changed', async () => {
    for (let i = 0; i < 20; i++) await configured.checkAsync(`new ${i}`)
    await configured.checkAsync('user')
    configured.peek('seen')
    await new Promise((resolve) => setImmediate(resolve))
  })
  assert.equal(first, [], 'the first look at a key is no change')
  const moves = await heard('millrace:policy-changed', () => config.put('user', { limit: 9, window: '1m' }))
  assert.equal(moves, [{ rule: undefined, key: 'user', limit: undefined }])
  await configured.close()
})

test('evictions of live keys are published with their number, and no key', async () => {
  const limiter = createLimiter({ limit: 5, window: '1h', maxKeys: 20, clock: clock() })
  const messages = await heard('millrace:evicted-live', () => {
    for (let i = 0; i < 1_000; i++) limiter.check(`key ${i}`)
  })
  const count = messages.reduce((sum, message) => sum + (message.count as number), 0)
  assert.is(count, limiter.stats().evictedLive)
  assert.ok(count > 0)
  assert.equal([messages.length, Object.keys(messages[0]!)], [1, ['count']])
})

for (const [what, key, shown] of [
  ['newlines', 'a\r\nb\u2028c', 'a\\u{d}\\u{a}b\\u{2028}c'],
  ['ANSI escapes', '\u001b[31mred\u009b0m', '\\u{1b}[31mred\\u{9b}0m'],
  ['bidirectional marks', '\u202eevil\u2066\u200f', '\\u{202e}evil\\u{2066}\\u{200f}'],
  ['a script', '<script>', '<script>'],
  ['halves of a pair', 'a\ud800', 'a\\u{d800}'],
  ['backslashes', '\\u{a}', '\\\\u{a}'],
  ['64 KB', 'x'.repeat(65_536), `${'x'.repeat(256)}…(65536)`],
] as const) {
  test(`a key of ${what} is inert`, async () => {
    const limiter = limiterOf()
    limiter.check(key)
    const [message] = await heard('millrace:limited', () => limiter.check(key))
    assert.is(message!.key, shown)
  })
}

test('keys are hashed by the secret of the caller, in whole', async () => {
  const limiter = limiterOf()
  const secret = 'a secret of the caller'
  const keys = ['key', 'x'.repeat(65_535), 'x'.repeat(65_536)]
  setEventOptions({ keyInEvents: 'hash', secret })
  for (const key of keys) limiter.check(key)
  const messages = await heard('millrace:limited', () => {
    for (const key of keys) limiter.check(key)
  })
  setEventOptions({})
  const hashes = keys.map((key) => createHmac('sha256', secret).update(key).digest('base64url'))
  assert.equal(
    messages.map(({ key }) => key),
    hashes,
  )
  assert.is(new Set(hashes).size, 3)
  assertRaises(() => setEventOptions({ keyInEvents: 'hash' }), 'ERR_MILLRACE_INVALID_OPTION', 'secret')
  assertRaises(
    () => setEventOptions({ keyInEvents: 'hash', secret: 'short' }),
    'ERR_MILLRACE_INVALID_OPTION',
    'secret',
  )
  assertRaises(
    () => setEventOptions({ keyInEvents: 'no' } as never),
    'ERR_MILLRACE_INVALID_OPTION',
    'keyInEvents',
  )
  assertRaises(() => setEventOptions({ key: 'hash' } as never), 'ERR_MILLRACE_INVALID_OPTION', 'options')
})

test('the refusal of a request names its route, also by a limiter that answers later', async () => {
  const pool = createLimiter({ ...MINUTE, engine: 'pool', pool: { maxThreads: 1 } })
  const configured = createLimiter({
    config: memoryConfig(),
    default: MINUTE,
    engine: 'pool',
    pool: { maxThreads: 1 },
  })
  const routes = {
    'GET /inline': MINUTE,
    'GET /pool': { limiter: pool },
    'GET /policy': { limiter: configured },
  }
  const limited = rateLimit({ routes })
  const messages = await heard('millrace:limited', () =>
    withServer(
      (request, response) => limited(request, response, () => response.end()),
      async (url) => {
        const paths = ['inline', 'pool', 'policy'].flatMap((name) => [name, name])
        for (const path of paths) await (await fetch(`${url}/${path}`)).text()
        await pool.check('another')
        await pool.check('another')
      },
    ),
  )
  assert.equal(
    messages.map(({ route }) => route),
    ['GET /inline', 'GET /pool', 'GET /policy', undefined],
  )
  await Promise.all([limited.close(), pool.close(), configured.close()])
})

test('a middleware tells the key of a refused request, and of one on the list deny', async () => {
  const told: unknown[][] = []
  const onLimited = (_: unknown, { rule }: { rule: string }, key: string) => void told.push([rule, key])
  const limited = rateLimit({ ...MINUTE, onLimited })
  const denying = rateLimit({ ...MINUTE, deny: ['127.0.0.0/8'], onLimited })
  const serve = async (by: typeof limited, requests: number) =>
    withServer(
      (request, response) => by(request, response, () => response.end()),
      async (url) => {
        for (let i = 0; i < requests; i++) await (await fetch(url)).text()
      },
    )
  const refused = await heard('millrace:limited', () => serve(limited, 2))
  const denied = await heard('millrace:blocked', () => serve(denying, 1))
  assert.equal(told, [
    ['minute', '127.0.0.1'],
    ['deny', '127.0.0.1'],
  ])
  assert.equal([textsOf(refused), textsOf(denied)], [[['minute', '127.0.0.1']], [['deny', '127.0.0.1']]])
  assert.equal(
    [...refused, ...denied].map(({ route }) => route),
    ['default', 'default'],
  )
  await limited.close()
  await denying.close()
})

test.run()
