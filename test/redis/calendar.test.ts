// run: also-full, also-long
// Rules with `align: 'calendar'` on servers: Redis, two shards of it, Memcached, and a store of a user's own.
import { Redis } from 'ioredis'
import { type AsyncLimiter, group, type Period, type RuleOptions } from 'millrace'
import { createBackendLimiter } from 'millrace/backend'
import { createMemcachedLimiter } from 'millrace/memcached'
import { createRedisLimiter } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { lmdbValues, temporaryFolder } from '../backend/conformance-place.js'
import { boundsOf } from '../calendar.js'
import { assertRejects } from '../limiter/support.js'
import { clientOf, end } from '../memcached/limiters.js'
import { sized } from '../size.js'
import { one, type Random, randomOf, runExact } from './exact.js'
import { ModelRule } from './exact-rules.js'
import type { Server } from './process.js'
import { startMemcached, startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

const HOUR_MS = 3_600_000
const at = (iso: string) => Date.parse(iso)
const calendar = { algorithm: 'fixed-window', align: 'calendar' } as const

let servers: readonly Server[]
let memcached: Server
let clients: readonly Redis[]
let values: Awaited<ReturnType<typeof lmdbValues>>

test.before(async () => {
  servers = await Promise.all([startRedis(), startRedis()])
  memcached = await startMemcached()
  clients = servers.map(({ port }) => new Redis(port, '127.0.0.1'))
  values = await lmdbValues(temporaryFolder())
})
test.after(async () => {
  for (const client of clients ?? []) client.disconnect()
  await Promise.all((servers ?? []).map((server) => server.stop()))
  if (memcached) await end(memcached)
  await values?.close()
})

interface Options extends RuleOptions {
  readonly prefix: string
  readonly testTime?: () => number
}

const settings = { deadline: '1m' } as const
const PLACES: Readonly<Record<string, (options: Options) => AsyncLimiter>> = {
  Redis: (options) => createRedisLimiter({ client: clients[0]!, ...settings, ...options }),
  'two shards': (options) =>
    createRedisLimiter({
      shards: clients.map((client, i) => ({ name: `shard ${i}`, client })),
      ...settings,
      ...options,
      prefix: `shards ${options.prefix}`,
    }),
  Memcached: (options) =>
    createMemcachedLimiter({
      ...{ client: clientOf(memcached.port), strict: true, clockSkew: 0 },
      ...settings,
      ...options,
    }),
  'a store of one’s own': (options) =>
    createBackendLimiter({ values, source: 'lmdb', clockSkew: 0, ...settings, ...options }),
}

test('random operations by days of UTC give the figures of the definition', async () => {
  const rule = (_: Random, name: string) => ({ name, limit: 20, ...calendar, period: 'day' }) as const
  const found = await runExact(clients[0]!, sized({ quick: 1_500, full: 20_000, long: 100_000 }), 11, {
    rule,
    model: (shown) => new ModelRule(shown),
  })
  assert.ok(found.admitted > found.operations / 20 && found.refused > found.operations / 20)
  assert.ok(found.givenBack > 0)
})

const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Pacific/Apia'] as const
const PERIODS: readonly Period[] = ['day', 'week', 'month', 'year']

for (const [place, make] of Object.entries(PLACES))
  test(`${place}: random calls are counted by the periods of another calculation`, async () => {
    const random = randomOf(5)
    for (let run = sized({ quick: 4, full: 30, long: 200 }); run > 0; run--) {
      const [period, timeZone] = [one(random, PERIODS), one(random, ZONES)]
      let nowMs = at('2012-01-10T00:00Z') + Math.floor(random() * 18 * 365 * 24 * HOUR_MS)
      const own = { limit: 5, ...calendar, period, timeZone }
      const limiter = make({ ...own, prefix: `random ${run}`, testTime: () => nowMs })
      await limiter.ready()
      let [used, endMs] = [0, 0]
      for (let call = 0; call < 30; call++) {
        nowMs += Math.floor(random() * one(random, [2 * HOUR_MS, 30 * HOUR_MS, 40 * 24 * HOUR_MS]))
        const [, ends] = boundsOf(period, timeZone, nowMs)
        if (ends !== endMs) used = 0
        endMs = ends
        const cost = Math.floor(random() * 6)
        const fits = cost === 0 || used + cost <= 5
        const op = one(random, ['check', 'check', 'peek', 'penalize', 'refund'])
        if (op === 'penalize') {
          await limiter.penalize('key', cost)
          used += cost
        } else if (op === 'refund') {
          assert.is(await limiter.refund('key', cost), Math.min(cost, used))
          used -= Math.min(cost, used)
        } else {
          const decision = op === 'check' ? await limiter.check('key', cost) : await limiter.peek('key', cost)
          if (op === 'check' && fits) used += cost
          assert.equal(
            [decision.allowed, decision.remaining, decision.retryAfterMs, decision.resetMs],
            [fits, Math.max(0, 5 - used), fits ? 0 : endMs - nowMs, used > 0 ? endMs - nowMs : 0],
          )
        }
        assert.is(await limiter.usage('key'), used)
      }
      await limiter.close()
    }
  })

/** Makes something in a runtime whose data of time zones have another zone in place of this one. */
function withOtherData<T>(timeZone: string, instead: string, act: () => T): T {
  const { DateTimeFormat } = Intl
  Intl.DateTimeFormat = class extends DateTimeFormat {
    constructor(locale: string, options: Intl.DateTimeFormatOptions = {}) {
      super(locale, options.timeZone === timeZone ? { ...options, timeZone: instead } : options)
    }
  } as typeof DateTimeFormat
  try {
    return act()
  } finally {
    Intl.DateTimeFormat = DateTimeFormat
  }
}

/** The midnights of London are an hour after those of Berlin. */
function twoNodes(make: (options: Options) => AsyncLimiter, prefix: string, testTime: () => number) {
  const options = {
    prefix,
    testTime,
    limit: 5,
    ...calendar,
    period: 'day',
    timeZone: 'Europe/Berlin',
  } as const
  return [make(options), withOtherData('Europe/Berlin', 'Europe/London', () => make(options))] as const
}

for (const [place, make] of Object.entries(PLACES)) {
  test(`${place}: nodes with other data of time zones count to the later end, and give back to it`, async () => {
    let nowMs = at('2026-06-10T21:30Z')
    const [early, late] = twoNodes(make, 'nodes', () => nowMs)
    await early.ready()
    const first = await early.check('key', 1)
    const second = await late.check('key', 4)
    assert.equal([first.resetMs, second.resetMs], [0.5 * HOUR_MS, 1.5 * HOUR_MS])
    nowMs = at('2026-06-10T22:10Z') // Berlin has midnight; the other node does not
    const refused = await early.check('key')
    assert.equal([refused.allowed, refused.retryAfterMs], [false, 50 * 60_000])
    assert.is(await early.refund(first), 1)
    assert.is((await early.check('key')).allowed, true)
    assert.is((await late.check('key')).allowed, false)
    nowMs = at('2026-06-10T23:00Z')
    assert.is((await early.check('key', 5)).resetMs, 23 * HOUR_MS)
    nowMs = at('2026-06-11T22:10Z') // the day of Berlin has ended, but not that of the other node
    assert.is((await late.check('key')).allowed, false)
    await early.close()
    await late.close()
  })

  test(`${place}: of random calls of such nodes, the limit holds until each end that was said`, async () => {
    const random = randomOf(3)
    for (let run = sized({ quick: 3, full: 15, long: 100 }); run > 0; run--) {
      let nowMs = at('2026-06-10T12:00Z')
      const nodes = twoNodes(make, `other nodes ${run}`, () => nowMs)
      await Promise.all(nodes.map((node) => node.ready()))
      const admitted: { ms: number; cost: number; endMs: number }[] = []
      for (let call = 0; call < 50; call++) {
        nowMs += Math.floor(random() * 2 * HOUR_MS)
        const cost = 1 + Math.floor(random() * 5)
        const { allowed, resetMs } = await one(random, nodes).check('key', cost)
        if (allowed) admitted.push({ ms: nowMs, cost, endMs: nowMs + resetMs })
      }
      for (const { ms, endMs } of admitted) {
        const counted = admitted.filter((each) => each.ms >= ms && each.ms < endMs)
        assert.ok(counted.reduce((sum, { cost }) => sum + cost, 0) <= 5)
      }
      await Promise.all(nodes.map((node) => node.close()))
    }
  })

  test(`${place}: rules of several kinds, of which a calendar is one, are all or nothing`, async () => {
    let nowMs = at('2026-06-10T12:00Z')
    const rules = [
      { name: 'minute', limit: 3, window: '1m' },
      { name: 'month', limit: 5, ...calendar, period: 'month', timeZone: 'Asia/Tokyo' },
      { name: 'day', limit: 9, ...calendar, period: 'day' },
    ] as const
    const limiter = make({ rules, prefix: 'several', testTime: () => nowMs } as never)
    await limiter.ready()
    assert.is((await limiter.check('key', 3)).allowed, true)
    nowMs += 2 * HOUR_MS
    const refused = await limiter.check('key', 3)
    const tokyo = boundsOf('month', 'Asia/Tokyo', nowMs)[1] - nowMs
    assert.equal([refused.allowed, refused.rule, refused.retryAfterMs], [false, 'month', tokyo])
    const { rules: parts } = await limiter.check('key', 2)
    assert.equal(
      parts.map(({ remaining }) => remaining),
      [1, 0, 4],
    )
    assert.is(parts[2]!.resetMs, 10 * HOUR_MS)
    await limiter.close()
  })

  test(`${place}: by the time of the system, too, a day ends at the midnight of its zone`, async () => {
    const timeZone = 'Asia/Kathmandu'
    const limiter = make({ limit: 5, ...calendar, period: 'day', timeZone, prefix: 'real' })
    await limiter.ready()
    const { resetMs } = await limiter.check('key')
    const [startMs, endMs] = boundsOf('day', timeZone, Date.now() + resetMs)
    const offMs = Math.min(Date.now() + resetMs - startMs, endMs - Date.now() - resetMs)
    assert.ok(Math.abs(offMs) < 10_000, `${offMs} ms off`)
    await limiter.close()
  })

  test(`${place}: another time zone or period is another rule, whose value is an error by name`, async () => {
    const own = { limit: 5, ...calendar, prefix: 'shapes' } as const
    const [first, ...others] = [
      make({ ...own, period: 'day' }),
      make({ ...own, period: 'day', timeZone: 'Asia/Tokyo' }),
      make({ ...own, period: 'week' }),
    ]
    await first!.check('key')
    for (const other of others) {
      await other.ready()
      const error = await other.check('key').catch((reason: unknown) => reason)
      assert.match(String(error), /another window or algorithm/)
      await other.close()
    }
    await first!.close()
  })
}

test('a value on Redis goes when its period ends', async () => {
  const limiter = PLACES.Redis!({ limit: 5, ...calendar, period: 'month', prefix: 'expiry' })
  await limiter.ready()
  const { resetMs } = await limiter.check('key')
  const leftMs = await clients[0]!.pttl('mr:1:expiry:{key}:default')
  assert.ok(leftMs <= resetMs + 1 && leftMs > resetMs - 60_000, `${leftMs} of ${resetMs}`)
  await limiter.block('key', Number.POSITIVE_INFINITY)
  await limiter.clear('key')
  assert.ok((await clients[0]!.pttl('mr:1:expiry:{key}:default')) > 0, 'a cleared value keeps its birth')
  await limiter.close()
})

test('a process whose clock is days from that of the server gets an error by name', async () => {
  const { now } = Date
  const limiter = PLACES.Redis!({ limit: 5, ...calendar, period: 'day', prefix: 'far' })
  await limiter.ready()
  assert.is((await limiter.check('key')).allowed, true)
  try {
    Date.now = () => now() + 2 * 24 * HOUR_MS
    assert.is((await limiter.check('key')).remaining, 3, 'two days are still right')
    for (const days of [3, -3]) {
      Date.now = () => now() + days * 24 * HOUR_MS
      const { message } = await assertRejects(
        () => limiter.check('key'),
        'ERR_MILLRACE_REDIS_VALUE',
        "the value of 'key'",
      )
      assert.match(message, /right time/)
    }
  } finally {
    Date.now = now
  }
  assert.is((await limiter.check('key')).remaining, 2)
  await limiter.close()
})

test('a group on one Redis counts by the calendars of its members', async () => {
  let nowMs = at('2026-02-28T12:00Z')
  const own = { client: clients[0]!, ...settings, testTime: () => nowMs, ...calendar }
  const account = createRedisLimiter({ ...own, prefix: 'account', limit: 5, period: 'month' } as never)
  const address = createRedisLimiter({ ...own, prefix: 'address', limit: 3, period: 'day' } as never)
  const both = group({ account, address })
  const keys = { account: 'alice', address: 'home' }
  assert.is((await both.check(keys, 3)).allowed, true)
  const refused = await both.check(keys)
  assert.equal([refused.allowed, refused.member, refused.retryAfterMs], [false, 'address', 12 * HOUR_MS])
  nowMs = at('2026-03-01T00:00Z')
  assert.is((await both.check(keys, 3)).allowed, true)
  await account.close()
  await address.close()
})

test.run()
