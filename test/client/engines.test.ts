// The client with real engines: one, several, and engines that go away and come back.
import { createLimiter, type Limiter, type LimiterOptions, manualClock } from 'millrace'
import type { OutageChange } from 'millrace/client'
import { serve } from 'millrace-service'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Rendezvous } from '#millrace/core/rendezvous.js'
import { poll } from '../redis/poll.js'
import { clientOf, engine, QUIET, type Running } from './support.js'

/** Hands out an engine and a client of it. */
async function withEngine(
  act: (running: Running, limiter: ReturnType<typeof clientOf>) => Promise<void>,
): Promise<void> {
  const running = await engine()
  const limiter = clientOf({ url: running.url })
  try {
    await act(running, limiter)
  } finally {
    await limiter.close()
    await running.close()
  }
}

test('the rules, the counts and the limits are those of the engine', () =>
  withEngine(async ({ limiter: own, clock }, limiter) => {
    await limiter.ready()
    assert.equal(limiter.rules, own.rules)
    for (let i = 0; i < 5; i++) assert.is((await limiter.check('a')).allowed, true)
    const refused = await limiter.check('a')
    assert.equal(
      [refused.allowed, refused.remaining, refused.limit, refused.rule, refused.source],
      [false, 0, 5, 'default', 'service'],
    )
    assert.is(refused.retryAfterMs, own.peek('a').retryAfterMs)
    clock.advance(refused.retryAfterMs)
    assert.is((await limiter.check('a')).allowed, true)
    assert.is(own.usage('a'), 1)
    const { own: counted } = await limiter.stats()
    assert.equal([counted.admitted, counted.refused], [6, 1])
  }))

const KINDS = {
  'a calendar': { align: 'calendar', period: 'month', timeZone: 'Asia/Tokyo', algorithm: 'fixed-window' },
  'a burst': { window: '1m', algorithm: 'token-bucket', limit: 60, burst: 20 },
  'units, refusals and a shadow': { window: '1m', unit: 2, countRefused: true, shadow: true },
  'a log': { window: '1m', algorithm: 'sliding-log', maxLimit: 50 },
} as const
for (const [kind, options] of Object.entries(KINDS))
  test(`the rule of the engine is known as it is: ${kind}`, async () => {
    const own = { limit: 10, maxKeys: 50, ...options } as LimiterOptions
    const counting = createLimiter(own)
    const { url, close } = await serve({ port: 0, ...QUIET }, { limiters: new Map([['default', counting]]) })
    const limiter = clientOf({ url })
    await limiter.ready()
    assert.equal(limiter.rules, counting.rules)
    await limiter.close()
    await close()
    await counting.close()
  })

test('a decision is given back by its token, and a reservation settled', () =>
  withEngine(async ({ limiter: own }, limiter) => {
    const decision = await limiter.check('a', 3)
    assert.is(await limiter.refund(decision), 3)
    assert.is(await limiter.refund(decision), 0)
    const reservation = await limiter.reserve('a', 5)
    assert.is(await reservation.commit(2), -3)
    assert.is(own.usage('a'), 2)
    const more = await limiter.reserve('a', 1)
    assert.is(await more.commit(2), 1)
    assert.is(own.usage('a'), 4)
    assert.is(await limiter.refund('a', 3), 3)
    assert.is(own.usage('a'), 1)
  }))

test('a key is blocked for ever, penalized and cleared there', () =>
  withEngine(async ({ limiter: own }, limiter) => {
    assert.is(await limiter.block('a', Number.POSITIVE_INFINITY), true)
    assert.is((await limiter.check('a')).retryAfterMs, Number.POSITIVE_INFINITY)
    assert.is(await limiter.unblock('a'), true)
    assert.is(await limiter.unblock('a'), false)
    assert.is(await limiter.penalize('a', 4), true)
    assert.is(await limiter.usage('a'), 4)
    await limiter.clear('a')
    assert.is(own.usage('a'), 0)
  }))

const KEYS = Array.from({ length: 60 }, (_, i) => `user:${i}`)

test('of several engines, each key goes to the one of the formula, and batches are split', async () => {
  const engines = { a: await engine(), b: await engine(), c: await engine() }
  const urls = Object.entries(engines).map(([name, { url }]) => ({ name, url }))
  const limiter = clientOf({ urls })
  await limiter.checkMany(KEYS)
  await Promise.all(KEYS.map((key) => limiter.check(key)))
  const formula = new Rendezvous(Object.entries(engines).map(([name, { limiter: own }]) => [name, own]))
  for (const key of KEYS) {
    const owner = formula.find(key)
    for (const { limiter: own } of Object.values(engines))
      assert.is(own.usage(key), own === owner ? 2 : 0, key)
  }
  await limiter.close()
  for (const { close } of Object.values(engines)) await close()
})

test('the example of the formula: alice is on c, bob and carol on b', async () => {
  const engines = { a: await engine(), b: await engine(), c: await engine() }
  const urls = Object.entries(engines).map(([name, { url }]) => ({ name, url }))
  const limiter = clientOf({ urls: urls.reverse() })
  for (const key of ['alice', 'é', 'bob', 'carol', '{x}']) await limiter.check(key)
  const used = (name: keyof typeof engines, key: string) => engines[name].limiter.usage(key)
  assert.equal([used('c', 'alice'), used('c', '{x}')], [1, 1])
  assert.equal([used('b', 'bob'), used('b', 'carol'), used('b', 'é')], [1, 1, 1])
  await limiter.close()
  for (const { close } of Object.values(engines)) await close()
})

test('an engine that is away has the outage policy for its own keys only', async () => {
  const engines = { a: await engine(), b: await engine() }
  const urls = Object.entries(engines).map(([name, { url }]) => ({ name, url }))
  const formula = new Rendezvous([
    ['a', 'a'],
    ['b', 'b'],
  ])
  const limiter = clientOf({ urls })
  await limiter.ready()
  await engines.b.close()
  const batch = await limiter.checkMany(KEYS)
  for (const [i, key] of KEYS.entries()) {
    const isThere = formula.find(key) === 'a'
    assert.equal(
      [key, batch.allowed[i], batch.source?.(i)],
      [key, isThere ? 1 : 0, isThere ? 'service' : 'outage'],
    )
  }
  const { engines: states } = await limiter.stats()
  assert.equal(
    states.map(({ name }) => name),
    ['a', 'b'],
  )
  await limiter.close()
  await engines.a.close()
})

test('`closed` refuses, `open` allows, `local` has a share, and each says so', async () => {
  const running = await engine({ limit: 6 })
  await running.close()
  const rules = [{ limit: 6, window: '1m' }] as const
  const decided: Record<string, string[]> = {}
  for (const onOutage of ['closed', 'open', 'local'] as const) {
    const changes: OutageChange[] = []
    const onOutageChange = (change: OutageChange) => void changes.push(change)
    const limiter = clientOf({ url: running.url, onOutage, nodes: 2, rules, onOutageChange })
    decided[onOutage] = []
    for (let i = 0; i < 4; i++) {
      const { allowed, source } = await limiter.check('a')
      decided[onOutage].push(`${allowed} ${source}`)
    }
    assert.equal(
      changes.map(({ state, policy, store }) => `${state} ${policy} ${store}`),
      [`outage ${onOutage} service`],
    )
    const { outages, inOutage, lastFailure } = await limiter.stats()
    assert.equal([outages, inOutage], [4, true])
    assert.match(lastFailure!, /ECONNREFUSED/)
    await limiter.close()
  }
  assert.equal(decided.closed, Array(4).fill('false outage'))
  assert.equal(decided.open, Array(4).fill('true outage'))
  assert.equal(decided.local, [...Array(3).fill('true local'), 'false local'])
})

test('what a share has admitted is reported when the engine is back', async () => {
  const clock = manualClock(1_000)
  const own = createLimiter({ limit: 6, window: '1m', clock }) as Limiter
  const limiters = new Map([['default', own]])
  const first = await serve({ port: 0, ...QUIET }, { limiters })
  const port = Number(new URL(first.url).port)
  const limiter = clientOf({
    url: first.url,
    onOutage: 'local',
    nodes: 2,
    testTime: () => clock.now(),
  } as Parameters<typeof clientOf>[0])
  await limiter.ready()
  assert.is((await limiter.check('a')).source, 'service')
  await first.close()
  assert.is((await limiter.check('a')).source, 'local')
  assert.is((await limiter.check('a')).source, 'local')
  assert.is((await limiter.check('a')).allowed, false, 'the share of 3 is used up')
  const again = await serve({ port, ...QUIET }, { limiters })
  await poll(async () => (await limiter.peek('b')).source === 'service', 'an answer of the engine')
  await poll(() => own.usage('a') >= 3, 'the report')
  assert.is(own.usage('a'), 3)
  await limiter.close()
  await again.close()
  own.close()
})

test('`ready` waits for an engine that starts later', async () => {
  const first = await engine()
  const port = Number(new URL(first.url).port)
  await first.close()
  const limiter = clientOf({ url: first.url })
  const ready = limiter.ready()
  assert.is((await limiter.check('a')).source, 'outage')
  const running = await engine({}, port)
  await ready
  assert.is(limiter.rule.limit, 5)
  await limiter.close()
  await running.close()
})

test('the rules of an engine that comes back with others are learned', async () => {
  const first = await engine()
  const port = Number(new URL(first.url).port)
  const limiter = clientOf({ url: first.url })
  await limiter.ready()
  await first.close()
  assert.is((await limiter.check('a')).source, 'outage')
  for (let i = 0; i < 5; i++) await limiter.check('a')
  const running = await engine({ limit: 9, window: '1h' }, port)
  await poll(
    async () => (await limiter.peek('a')).source === 'service' && limiter.rule.limit === 9,
    'the rules',
  )
  assert.is(limiter.rule.windowMs, 3_600_000)
  await limiter.close()
  await running.close()
})

test('a limit that `update` changes holds for this client, and a limit of a call for that call', () =>
  withEngine(async ({ url, limiter: own }, limiter) => {
    await limiter.ready()
    assert.is((await limiter.check('a', 1, { limit: 9 })).limit, 9)
    assert.is((await limiter.check('a', 1, { limit: 0 })).allowed, false)
    assert.is(
      (await limiter.check('a', 99, { limit: Number.POSITIVE_INFINITY })).limit,
      Number.POSITIVE_INFINITY,
    )
    await limiter.update('default', { limit: 2 })
    assert.equal([(await limiter.check('a')).limit, (await limiter.check('a')).allowed], [2, false])
    const other = clientOf({ url })
    assert.is((await other.check('a')).limit, 5)
    await other.close()
    assert.is(own.rule.limit, 5)
  }))

test.run()
