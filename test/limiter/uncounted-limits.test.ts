// Limits that need no count: 0 refuses, and Infinity admits, whatever a key has used, and neither is charged. In each
// place where limiters count, and while their server does not answer: given by a call or by a policy, as the one rule,
// as one of two, or as that of a member of a group.
// run: also-full, also-long
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { attachLimiter, createLimiter, type Decision, MillraceError, type Policy } from 'millrace'
import { fileConfig } from 'millrace/config/file'
import { memoryConfig } from 'millrace/config/memory'
import { createMemcachedLimiter, type MemcachedLimiterOptions } from 'millrace/memcached'
import { createRedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import { test as any } from 'uvu'
import * as assert from 'uvu/assert'
import { type Maker, makerIn, type Options } from '../conformance/places.js'
import { thrownBy } from '../conformance/suite.js'
import type { Either } from '../engines/both.js'
import { clientOf } from '../memcached/limiters.js'
import { test as withAddon } from '../native/addon-test.js'
import type { Server } from '../redis/process.js'
import { startMemcached, startRedis } from '../redis/servers.js'
import { memcachedTest, redisTest } from '../redis/skip.js'
import { shareOf, sized } from '../size.js'

type Limit = number | 'unlimited'
type Reserved = { decision: Decision; commit(cost?: number): unknown; cancel(): unknown }

/** What can be asked of one key, by one limit. */
interface Asked {
  check(cost?: number): unknown
  peek(cost?: number): unknown
  reserve(cost: number): unknown
  wait(): unknown
  orThrow(): unknown
  many?(): unknown
  /** The units that were counted before the limit was given. */
  usage(): unknown
  /** Whether there is another rule, which is charged. */
  readonly isJoined?: boolean
  /** Whether each policy has cells of its own, to which the units of all others are carried over. */
  readonly hasOwnWindow?: boolean
  refund(decision: Decision): unknown
  block(): unknown
}

const PLACES = ['inline', 'thread', 'attached', 'pool', 'file', 'redis', 'shards', 'memcached'] as const
const TESTS: Readonly<Record<string, (name: string, act: () => Promise<void>) => void>> = {
  file: withAddon,
  redis: redisTest,
  shards: redisTest,
  memcached: memcachedTest,
}
const LIMITS: readonly Limit[] = [0, 'unlimited', Number.POSITIVE_INFINITY]
const window = '1h'
const COUNTED = { limit: 6, window } as const
const RULES: Readonly<Record<string, object>> = {
  'sliding window': {},
  'sliding log': { algorithm: 'sliding-log' },
  'sliding counter': { algorithm: 'sliding-counter' },
  'fixed window': { algorithm: 'fixed-window' },
  'token bucket': { algorithm: 'token-bucket' },
  'another burst': { algorithm: 'token-bucket', burst: 8 },
  'refusals that count': { countRefused: true },
  unit: { unit: 2 },
}

/** How the limit of the key `a` is given. */
type Way = (maker: Maker, place: string, rule: object, limit: Limit) => Promise<Asked>

const asked = (limiter: Either, options: object | undefined, many: boolean): Asked => ({
  check: (cost = 2) => limiter.check('a', cost, options),
  peek: (cost = 2) => limiter.peek('a', cost, options),
  reserve: (cost) => limiter.reserve('a', cost, options),
  wait: () => limiter.wait('a', { cost: 2, ...options }),
  orThrow: () => limiter.checkOrThrow('a', 2, options),
  ...(many && { many: () => limiter.checkMany(['a', 'a'], 2) }),
  usage: () => limiter.usage('a'),
  refund: (decision) => limiter.refund(decision),
  block: () => limiter.block('a', '1h'),
})

async function byPolicy(maker: Maker, place: string, before: Policy, after: Policy): Promise<Asked> {
  const config = memoryConfig({ a: before })
  const made = maker.make({ config, default: COUNTED, maxKeys: 20 } as unknown as Options)
  const limiter = place === 'attached' ? attachLimiter(made.share(), { config }) : made
  assert.ok((await limiter.check('a', 2)).allowed)
  await config.put('a', after)
  return {
    ...asked(limiter, undefined, true),
    async usage() {
      await config.put('a', before)
      return limiter.usage('a')
    },
    isJoined: 'rules' in before,
    hasOwnWindow: /log|bucket/.test(JSON.stringify(before)),
  }
}

async function byCall(maker: Maker, place: string, options: object, limit: unknown): Promise<Asked> {
  const made = maker.make({ ...options, maxKeys: 20 } as Options)
  const limiter = place === 'attached' ? maker.second(made) : made
  assert.ok((await limiter.check('a', 2)).allowed)
  return { ...asked(limiter, { limit }, false), isJoined: 'rules' in options }
}

/** On Redis, a log and a sliding counter go only with their like. */
const other = (rule: { algorithm?: string }) =>
  ['sliding-log', 'sliding-counter'].includes(rule.algorithm!) ? { algorithm: rule.algorithm } : {}

/** On Redis, no group joins a log, a counter or shards, and a policy on shards can't have a log or a counter. */
const isLeftOut = (place: string, way: string, rule: object): boolean => {
  const isCounting = Object.keys(other(rule)).length > 0
  if (way === 'group') return isCounting || place === 'shards'
  return way.startsWith('policy') && isCounting && place === 'shards'
}

const two = (rule: object, limit: Limit) => ({
  rules: [
    { ...COUNTED, ...rule, limit, name: 'own' },
    { ...other(rule), limit: 100, window: '2h', name: 'other' },
  ],
})

const WAYS: Readonly<Record<string, Way>> = {
  call: (maker, place, rule, limit) => byCall(maker, place, { ...COUNTED, ...rule }, limit),
  'call to two rules': (maker, place, rule, limit) => byCall(maker, place, two(rule, 6), { own: limit }),
  policy: (maker, place, rule, limit) =>
    byPolicy(maker, place, { ...COUNTED, ...rule }, { ...COUNTED, ...rule, limit } as Policy),
  'policy of two rules': (maker, place, rule, limit) =>
    byPolicy(maker, place, two(rule, 6) as Policy, two(rule, limit) as Policy),
  async group(maker, place, rule, limit) {
    const make = (options: object) => {
      const made = maker.make({ maxKeys: 20, ...options } as Options)
      return place === 'attached' ? maker.second(made) : made
    }
    const own = make({ ...COUNTED, ...rule })
    const both = maker.group({ own, other: make({ limit: 1_000, window: '2h' }) })
    const keys = { own: 'a', other: 'b' }
    const options = { limit: { own: limit } } as { limit: { own: number } }
    assert.ok((await both.check(keys, 2)).allowed)
    return {
      check: (cost = 2) => both.check(keys, cost, options),
      peek: (cost = 2) => both.peek(keys, cost, options),
      reserve: (cost) => both.reserve(keys, cost, options),
      wait: () => both.wait(keys, { cost: 2, ...options }),
      orThrow: () => both.checkOrThrow(keys, 2, options),
      usage: () => own.usage('a'),
      refund: (decision) => both.refund(decision as never),
      block: () => own.block('a', '1h'),
      isJoined: true,
    }
  },
}

const ONE = { 'sliding window': {} }
const OF_MEMCACHED = { ...ONE, 'refusals that count': { countRefused: true } }
/** Each test of a pool starts threads. */
const onPool = sized({ quick: ONE, full: ONE, long: RULES })
const further = sized({ quick: ONE, full: RULES })
const rulesIn = (place: string) =>
  place === 'memcached' ? OF_MEMCACHED : place === 'pool' ? onPool : place === 'inline' ? RULES : further
const limitsIn = (place: string) => (place === 'pool' ? shareOf(LIMITS, LIMITS.length) : LIMITS)

for (const place of PLACES) {
  for (const [way, make] of Object.entries(WAYS)) {
    if (place === 'memcached' && way === 'group') continue // it joins none
    if (place === 'thread' && way.startsWith('policy')) continue // a store can't be sent: see 'attached'
    for (const [name, rule] of Object.entries(rulesIn(place))) {
      if (['redis', 'shards'].includes(place) && isLeftOut(place, way, rule)) continue
      for (const limit of limitsIn(place)) {
        const test = TESTS[place] ?? any
        test(`${place}, ${way}, ${name}: ${limit}`, async () => {
          const maker = await makerIn(place === 'attached' ? 'inline' : place)
          try {
            await verify(await make(maker, place, rule, limit), limit)
          } finally {
            await maker.close()
          }
        })
      }
    }
  }
}

redisTest('a refusal that needs no count is charged at no shard, also while keys move', async () => {
  const servers = [await startRedis(), await startRedis()]
  const shards = servers.map(({ port }, i) => ({
    name: `shard ${i}`,
    client: new Redis(port, '127.0.0.1', { lazyConnect: true }),
  }))
  const limiter = createRedisLimiter({
    ...{ prefix: 'test', ...COUNTED, countRefused: true, deadline: '1m' },
    ...{ shards, previousShards: shards.slice(0, 1), changeWithin: '1h' },
  })
  try {
    for (let i = 0; i < 20; i++) {
      const key = `key ${i}`
      await limiter.check(key, 2)
      await limiter.block(key, '1h')
      assert.not((await limiter.check(key, 2, { limit: Number.POSITIVE_INFINITY })).allowed)
      assert.is(await limiter.usage(key), 2, key)
    }
  } finally {
    await limiter.close()
    await Promise.all(servers.map((server) => server.stop()))
  }
})

async function verify(asked: Asked, limit: Limit): Promise<void> {
  const most = limit === 'unlimited' ? Number.POSITIVE_INFINITY : limit
  const isAllowed = most > 0
  const assertDecided = (decision: Decision, by: string) => {
    const { allowed, limit: shown, remaining, retryAfterMs } = decision
    const own = decision.rules.find(({ rule }) => rule === 'own') ?? decision.rules[0]!
    assert.is(allowed, isAllowed, by)
    assert.is(own.limit, most, by)
    assert.is(own.remaining, most, by)
    if (isAllowed) assert.is(retryAfterMs, 0, by)
    else assert.equal([shown, remaining, retryAfterMs], [0, 0, Number.POSITIVE_INFINITY], by)
    assert.ok(Number.isSafeInteger(decision.toJSON().limit), by)
  }
  for (let i = 0; i < 5; i++) assertDecided((await asked.check()) as Decision, 'check')
  assertDecided((await asked.peek()) as Decision, 'peek')
  const { decision, commit, cancel } = await reserved(asked)
  assertDecided(decision, 'reserve')
  if (isAllowed) {
    await commit(9)
    const other = await reserved(asked)
    await other.cancel()
    assertDecided((await asked.wait()) as Decision, 'wait')
    assertDecided((await asked.orThrow()) as Decision, 'checkOrThrow')
    assert.is(await asked.refund((await asked.check()) as Decision), asked.isJoined ? 2 : 0)
  } else {
    assert.instance(await thrownBy(async () => commit(9)), MillraceError)
    assert.instance(await thrownBy(async () => cancel()), MillraceError)
    const never = (await thrownBy(async () => asked.wait())) as MillraceError
    assert.is(never.code, 'ERR_MILLRACE_NEVER_ADMITTED')
    const limited = (await thrownBy(async () => asked.orThrow())) as MillraceError
    assert.is(limited.code, 'ERR_MILLRACE_LIMITED')
  }
  if (asked.many !== undefined) {
    const batch = (await asked.many()) as { allowed: Iterable<number> }
    assert.equal([...batch.allowed], isAllowed ? [1, 1] : [0, 0])
  }
  assert.is(((await asked.check(0)) as Decision).allowed, true, 'a cost of 0 passes')
  await asked.block()
  assert.is(((await asked.check()) as Decision).allowed, false, 'a blocked key')
  const counted = (await asked.usage()) as number
  assert.ok(asked.hasOwnWindow ? counted >= 2 : counted === 2, `${counted} of the 2 units from before`)
}

async function reserved(asked: Asked): Promise<Reserved> {
  const made = (await asked.reserve(3)) as Reserved
  return { decision: made.decision, commit: (cost) => made.commit(cost), cancel: () => made.cancel() }
}

/** What is decided without the store, by the option `onOutage`: whether it admits, and who decides. */
const OUTAGES = {
  closed: { 0: [false, 'local'], unlimited: [false, 'outage'] },
  open: { 0: [false, 'local'], unlimited: [true, 'outage'] },
  local: { 0: [false, 'local'], unlimited: [true, 'local'] },
} as const

const SERVERS = {
  async redis(options: object) {
    const server = await startRedis()
    const client = new Redis(server.port, '127.0.0.1', { lazyConnect: true })
    return [server, createRedisLimiter({ ...options, client } as unknown as RedisLimiterOptions)] as const
  },
  async memcached(options: object) {
    const server = await startMemcached()
    const client = clientOf(server.port)
    return [
      server,
      createMemcachedLimiter({ ...options, client } as unknown as MemcachedLimiterOptions),
    ] as const
  },
} satisfies Record<string, (options: object) => Promise<readonly [Server, Either]>>

for (const [place, start] of Object.entries(SERVERS)) {
  for (const [onOutage, expected] of Object.entries(OUTAGES)) {
    TESTS[place]!(
      `${place}, ${onOutage}: limits of calls and policies while the server does not answer`,
      async () => {
        const config = memoryConfig({ 0: { limit: 0, window }, unlimited: { limit: 'unlimited', window } })
        const [server, limiter] = await start({
          ...{ prefix: 'test', onOutage, nodes: 2, deadline: '1m', config },
          default: COUNTED,
        })
        await limiter.check('other')
        await server.kill()
        const names = ['0', 'unlimited'] as const
        for (const name of names) {
          const limit = name === '0' ? 0 : name
          for (let i = 0; i < 7; i++) {
            for (const { allowed, source, limit: shown } of [
              await limiter.check(name),
              await limiter.check('other', 1, { limit }),
              await limiter.peek(name),
            ])
              assert.equal(
                [allowed, source, shown],
                [...expected[name], limit === 0 ? 0 : Number.POSITIVE_INFINITY],
              )
          }
          assert.is((await limiter.checkMany([name])).allowed[0], Number(expected[name][0]))
        }
        await limiter.close()
        await server.stop()
      },
    )
  }
}

any('a shadow rule with a limit of 0 would have refused', async () => {
  for (const place of ['inline', 'pool'] as const) {
    const maker = await makerIn(place)
    const limiter = maker.make({ ...COUNTED, shadow: true, maxKeys: 20 } as Options)
    const { allowed, rules } = await limiter.check('a', 1, { limit: 0 })
    assert.equal([allowed, rules[0]!.shadow?.allowed], [true, false])
    await maker.close()
  }
})

any('the limit of a rule counts: of a limiter, of its change, and of the default', async () => {
  for (const limit of [0, Number.POSITIVE_INFINITY, 'unlimited'] as never[]) {
    for (const own of [{}, { unit: '1KB' }] as const) {
      const limiter = createLimiter({ limit: 5_000, window, ...own })
      for (const act of [
        () => createLimiter({ limit, window, ...own }),
        () => createLimiter({ rules: [{ limit, window, ...own }] }),
        () => createLimiter({ config: memoryConfig({}), default: { limit, window, ...own } }),
        () => limiter.update('default', { limit }),
        () => limiter.update('default', { limit, window: '2h' }),
      ])
        assert.throws(act, /limit: .*only calls and policies may also have 0 or 'unlimited'/)
    }
  }
})

any('a file of JSON or YAML may have such limits', () => {
  const place = mkdtempSync(join(tmpdir(), 'millrace-'))
  const texts = {
    'a.json': '{ "all": { "limit": "unlimited", "window": "1m" }, "none": { "limit": 0, "window": "1m" } }',
    'a.yaml': 'all: { limit: unlimited, window: 1m }\nnone: { limit: 0, window: 1m }\n',
  }
  for (const [name, text] of Object.entries(texts)) {
    writeFileSync(join(place, name), text)
    const config = fileConfig({ path: join(place, name) })
    const limiter = createLimiter({ config, default: { limit: 3, window }, maxKeys: 20 })
    for (const [key, allowed] of Object.entries({ all: true, none: false }))
      assert.equal(
        [1, 2, 3, 4].map(() => limiter.check(key).allowed),
        Array(4).fill(allowed),
      )
    limiter.close()
    config.close()
  }
  rmSync(place, { recursive: true })
})

any.run()
