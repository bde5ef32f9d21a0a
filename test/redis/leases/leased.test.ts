// `mode: 'leased'`: units that Redis has granted are spent without a trip, and the limit holds.
import { Redis } from 'ioredis'
import { createRedisLimiter, type RedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { turn } from '../../limiter/support.js'
import { poll } from '../poll.js'
import { startRedis } from '../servers.js'
import { redisTest as test } from '../skip.js'

const START_MS = 1_000_000_000
const [WINDOW_MS, LEASE_MS] = [60_000, 24_000]

interface Scene {
  readonly client: Redis
  /** A limiter on the same counts; `node` is a process by itself. */
  limiter(options?: Partial<RedisLimiterOptions>): RedisLimiter
  advance(ms: number): void
  /** What a timer does every half lease. */
  rest(limiter: RedisLimiter): Promise<void>
  stop(): Promise<void>
}

async function scene(act: (scene: Scene) => Promise<void>): Promise<void> {
  const server = await startRedis()
  const client = new Redis(server.port, '127.0.0.1')
  let nowMs = START_MS
  const all: RedisLimiter[] = []
  let isStopped = false
  const stop = async () => {
    if (isStopped) return
    isStopped = true
    await server.stop()
  }
  try {
    await act({
      client,
      limiter(options = {}) {
        const made = { client, prefix: 'test', limit: 100, window: '1m', granularity: '1s' } as const
        const own = { ...made, mode: 'leased', deadline: '1m', testTime: () => nowMs, ...options } as const
        const limiter = createRedisLimiter(own as RedisLimiterOptions)
        all.push(limiter)
        return limiter
      },
      advance: (ms) => {
        nowMs += ms
      },
      async rest(limiter) {
        storeOf(limiter).rest()
        await settled(limiter)
      },
      stop,
    })
  } finally {
    await Promise.all(all.map((limiter) => limiter.close()))
    client.disconnect()
    await stop()
  }
}

interface Leasing {
  rest(): void
  readonly isQuiet: boolean
}
const storeOf = (limiter: RedisLimiter) =>
  (limiter as unknown as { backend: { opened: { store: Leasing } } }).backend.opened.store

/** No message is under way, or about to be sent. */
async function settled(limiter: RedisLimiter): Promise<void> {
  await poll(async () => storeOf(limiter).isQuiet, 'the reply to the last message')
}

const leasesOf = async (limiter: RedisLimiter) => (await limiter.stats()).leases!

/** Requests that make a key worth a lease. */
async function warm(limiter: RedisLimiter, key = 'key', times = 4): Promise<void> {
  for (let i = 0; i < times; i++) assert.ok((await limiter.check(key)).allowed)
  await settled(limiter)
}

/** Spends what is held, without a trip. */
function spendAll(limiter: RedisLimiter, key = 'key'): number {
  let spent = 0
  while (limiter.checkNow(key)?.allowed) spent++
  return spent
}

test('what is held is spent without a trip, and told as a strict limiter would see it', () =>
  scene(async ({ limiter }) => {
    const node = limiter()
    const strict = limiter({ mode: 'strict' })
    assert.is(node.checkNow('key'), undefined, 'nothing is held yet')
    await warm(node)
    const { held, trips, spent } = await leasesOf(node)
    assert.ok(held >= 1, `${held} held`)
    assert.is((await strict.peek('key')).remaining, 100 - 4 - held, 'others count what is held')
    const decision = node.checkNow('key')!
    assert.equal(
      [decision.allowed, decision.source, decision.limit, decision.remaining, decision.retryAfterMs],
      [true, 'lease', 100, 95, 0],
    )
    assert.is((await node.peek('key')).remaining, 95)
    assert.is((await leasesOf(node)).trips, trips)
    assert.equal([(await node.stats()).allowed, (await leasesOf(node)).spent - spent], [5, 1])
  }))

test('requests of a key are decided in their order: what waits is not overtaken', () =>
  scene(async ({ limiter }) => {
    const node = limiter()
    await warm(node)
    const { held } = await leasesOf(node)
    const left = (await node.peek('key')).remaining
    const large = node.check('key', left)
    assert.is(node.checkNow('key'), undefined)
    const small = node.check('key')
    assert.ok(held >= 1)
    assert.equal([(await large).allowed, (await small).allowed], [true, false])
    await settled(node)
    const other = limiter({ prefix: 'batch' })
    await warm(other)
    const rest = (await other.peek('key')).remaining
    const batch = await other.checkMany(['key', 'key', 'key'], [rest - 1, 1, 1])
    assert.equal([...batch.allowed], [1, 1, 0])
  }))

test('the limit holds for nodes and strict limiters together, and the last unit is had by somebody', () =>
  scene(async ({ limiter, advance }) => {
    const nodes = [limiter(), limiter(), limiter({ mode: 'strict' })]
    let admitted = 0
    for (let i = 0; i < 300; i++) {
      if ((await nodes[i % 3]!.check('key')).allowed) admitted++
      advance(10)
    }
    for (const node of nodes.slice(0, 2)) await settled(node)
    assert.ok(admitted <= 100 && admitted >= 95, `${admitted} of 100`)
  }))

test('a lease ends by itself, and its units count for a window after that', () =>
  scene(async ({ limiter, advance }) => {
    const node = limiter()
    const strict = limiter({ mode: 'strict' })
    await warm(node)
    const { granted } = await leasesOf(node)
    advance(LEASE_MS)
    assert.is(node.checkNow('key'), undefined)
    assert.is((await leasesOf(node)).held, 0)
    // The node is gone: nobody tells what it has spent.
    advance(WINDOW_MS - 1_000)
    assert.is((await strict.peek('key')).remaining, 100 - granted)
    advance(2_000 + 1_000)
    assert.is((await strict.peek('key')).remaining, 100)
  }))

test('what lies idle is given back, and what was spent is settled by its age', () =>
  scene(async ({ limiter, advance, rest }) => {
    const node = limiter()
    const strict = limiter({ mode: 'strict' })
    await warm(node)
    const spent = spendAll(node)
    assert.ok(spent >= 1)
    await settled(node)
    advance(20_000)
    await rest(node)
    advance(3_000)
    await rest(node)
    await rest(node)
    assert.is((await leasesOf(node)).held, 0)
    assert.is((await strict.peek('key')).remaining, 96 - spent)
    // They leave a window after they were spent, and not after they were told.
    advance(WINDOW_MS - 23_000 + 2_000)
    assert.is((await strict.peek('key')).remaining, 100)
  }))

test('a limiter that closes gives back what it holds', () =>
  scene(async ({ limiter }) => {
    const node = limiter()
    const strict = limiter({ mode: 'strict' })
    await warm(node)
    assert.ok((await leasesOf(node)).held > 0)
    await node.close()
    assert.is((await strict.peek('key')).remaining, 96)
  }))

test('a block reaches its own process at once, and others by the end of their lease', () =>
  scene(async ({ limiter, advance }) => {
    const [node, other] = [limiter(), limiter()] as const
    await warm(node)
    await warm(other)
    await node.block('key', '1h')
    assert.is(node.checkNow('key'), undefined)
    assert.not((await node.check('key')).allowed)
    advance(LEASE_MS)
    assert.is(other.checkNow('key'), undefined)
    const refused = await other.check('key')
    assert.not(refused.allowed)
    assert.ok(refused.retryAfterMs > 3_000_000)
  }))

test('a charge that was spent from a lease can be given back, once', () =>
  scene(async ({ limiter }) => {
    const node = limiter()
    await warm(node)
    const decision = node.checkNow('key')!
    const before = (await node.peek('key')).remaining
    await settled(node)
    assert.is(await node.refund(decision), 1)
    assert.is(await node.refund(decision), 0)
    assert.is(before, 95)
  }))

test('while Redis does not answer, what is held is spent, and then `onOutage` decides', () =>
  scene(async ({ limiter, stop }) => {
    const node = limiter({ deadline: '50ms' })
    await warm(node)
    const { held } = await leasesOf(node)
    await stop()
    assert.is(spendAll(node), held)
    const decision = await node.check('key')
    assert.equal([decision.allowed, decision.source], [false, 'outage'])
  }))

test('a loss of all data is told to Redis: what was spent counts again', () =>
  scene(async ({ limiter, client, advance, rest }) => {
    const node = limiter()
    const strict = limiter({ mode: 'strict' })
    await warm(node)
    const spent = spendAll(node)
    await settled(node)
    advance(2_000)
    await rest(node)
    await client.flushall()
    for (let i = 0; i < 3; i++) await node.check('key')
    await settled(node)
    const { held } = await leasesOf(node)
    const charged = 4 + spent + 3
    await poll(async () => (await strict.peek('key')).remaining <= 100 - charged, 'the restored charges')
    assert.is((await strict.peek('key')).remaining, 100 - charged - held)
  }))

test('several rules: units are taken from the lease of each', () =>
  scene(async ({ limiter, advance }) => {
    const rules = [
      { name: 'minute', limit: 100, window: '1m', granularity: '1s' },
      { name: 'hour', limit: 1_000, window: '1h', granularity: '1m' },
    ]
    const plain = { limit: undefined, window: undefined, granularity: undefined } as object
    const node = limiter({ ...plain, rules } as never)
    const strict = limiter({ ...plain, rules, mode: 'strict' } as never)
    await warm(node)
    const held = (await leasesOf(node)).held
    assert.ok(held > 0)
    assert.is(node.checkNow('key', held + 1), undefined)
    const decision = node.checkNow('key', held)!
    assert.equal(
      decision.rules.map(({ rule }) => rule),
      ['minute', 'hour'],
    )
    await settled(node)
    const { held: more } = await leasesOf(node)
    const peeked = await strict.peek('key')
    assert.equal(
      peeked.rules.map(({ remaining }) => remaining),
      [100 - 4 - held - more, 1_000 - 4 - held - more],
    )
    advance(1_000)
  }))

test('a machine that was suspended holds nothing any more', async () => {
  const server = await startRedis()
  const client = new Redis(server.port, '127.0.0.1')
  const made = { client, prefix: 'test', limit: 1_000, window: '1m', mode: 'leased', deadline: '1m' } as const
  const node = createRedisLimiter(made)
  const wall = Date.now
  try {
    await warm(node, 'key', 10)
    assert.ok(node.checkNow('key')?.allowed)
    Date.now = () => wall() + 150
    assert.is(node.checkNow('key'), undefined)
    assert.is((await leasesOf(node)).held, 0)
  } finally {
    Date.now = wall
    await node.close()
    client.disconnect()
    await server.stop()
  }
})

test('a key that is cold, or at a small limit, has no lease', () =>
  scene(async ({ limiter, advance }) => {
    const node = limiter()
    for (let i = 0; i < 5; i++) {
      await node.check('key')
      advance(13_000)
    }
    const small = limiter({ prefix: 'small', limit: 14 })
    for (let i = 0; i < 20; i++) await small.check('key')
    for (const each of [node, small])
      assert.equal([(await leasesOf(each)).trips, (await leasesOf(each)).keys], [0, 0])
  }))

test('what can have no leases is refused by name', async () => {
  const client = new Redis({ lazyConnect: true })
  const made = { client, prefix: 'test', limit: 100, window: '1m' } as const
  const cases: readonly [object, RegExp][] = [
    [{ mode: 'lease' }, /mode.*'strict' or 'leased'/],
    [{ mode: 'leased', algorithm: 'fixed-window' }, /only sliding windows have leases/],
    [{ mode: 'leased', algorithm: 'token-bucket' }, /only sliding windows have leases/],
    [{ mode: 'leased', split: 4 }, /split/],
  ]
  for (const [options, expected] of cases)
    assert.throws(() => createRedisLimiter({ ...made, ...options } as RedisLimiterOptions), expected)
})

test('closing while requests wait settles each of them', () =>
  scene(async ({ limiter }) => {
    const node = limiter()
    await warm(node)
    const waiting = Array.from({ length: 200 }, () => node.check('key'))
    await turn()
    await node.close()
    const decisions = await Promise.all(waiting)
    assert.is(decisions.filter(({ allowed }) => allowed).length, 96)
  }))

test.run()
