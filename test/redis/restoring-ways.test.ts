// run: also-full, also-long
// Every way of charging, by each algorithm and client library: after each kind of loss, one after the other in one
// window, the processes restore what they have charged, less what they have given back.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { group } from 'millrace'
import {
  createRedisLimiter,
  type RedisLimiter,
  type RedisOptions,
  type RedisRulesOptions,
} from 'millrace/redis'
import * as assert from 'uvu/assert'
import { sized } from '../size.js'
import { CLIENTS, LIBRARIES } from './clients.js'
import { type Random, randomOf } from './exact.js'
import { poll } from './poll.js'
import type { Server } from './process.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'

const START_MS = 1_800_000_000_000
const WINDOW_MS = 60_000
const LIMIT = 100

const ALGORITHMS = [
  'sliding-window',
  'fixed-window',
  'token-bucket',
  'sliding-log',
  'sliding-counter',
] as const
type Algorithm = (typeof ALGORITHMS)[number]

interface Stage {
  readonly first: RedisLimiter
  readonly second: RedisLimiter
}

interface Way {
  readonly use: (stage: Stage) => Promise<unknown>
  /** The units that count then. */
  readonly used: number
  /** Those of a bucket, where they differ. */
  readonly usedOfBucket?: number
  readonly options?: Partial<RedisRulesOptions> & { readonly countRefused?: boolean; readonly unit?: number }
  /** Algorithms that can't have it. */
  readonly not?: readonly Algorithm[]
}

const NOT_PACKED = ['sliding-log', 'sliding-counter'] as const

const WAYS: Readonly<Record<string, Way>> = {
  check: { use: ({ first }) => first.check('key', 30), used: 30 },
  'check of both processes': {
    use: async ({ first, second }) => {
      await first.check('key', 10)
      await second.check('key', 20)
    },
    used: 30,
  },
  checkMany: { use: ({ first }) => first.checkMany(['key', 'other'], [30, 5]), used: 30 },
  wait: { use: ({ first }) => first.wait('key', { cost: 30 }), used: 30 },
  'commit as reserved': { use: async ({ first }) => (await first.reserve('key', 30)).commit(), used: 30 },
  'commit more': { use: async ({ first }) => (await first.reserve('key', 10)).commit(30), used: 30 },
  'commit less': { use: async ({ first }) => (await first.reserve('key', 30)).commit(10), used: 10 },
  cancel: {
    use: async ({ first }) => {
      await first.check('key', 5)
      await (await first.reserve('key', 30)).cancel()
    },
    used: 5,
  },
  penalize: { use: ({ first }) => first.penalize('key', 30), used: 30 },
  'penalize beyond the limit': {
    use: async ({ first }) => {
      await first.check('key', 90)
      await first.penalize('key', 40)
    },
    used: 130,
  },
  countRefused: {
    use: async ({ first }) => {
      await first.check('key', 60)
      assert.not((await first.check('key', 60)).allowed)
      assert.not((await first.check('key', 101)).allowed, 'never admitted, so not counted')
    },
    used: 120,
    options: { countRefused: true },
  },
  'a refusal of a request that needs no count': {
    use: async ({ first }) => {
      await first.check('key', 30)
      await first.block('key', '1m')
      assert.not((await first.check('key', 5, { limit: Number.POSITIVE_INFINITY })).allowed)
      await first.unblock('key')
    },
    used: 30,
    options: { countRefused: true },
  },
  'a refusal of a group that needs no count': {
    use: async ({ first }) => {
      await first.check('key', 30)
      await first.block('key', '1m')
      const limit = { only: Number.POSITIVE_INFINITY }
      assert.not((await group({ only: first }).check({ only: 'key' }, 5, { limit })).allowed)
      await first.unblock('key')
    },
    used: 30,
    options: { countRefused: true },
    not: NOT_PACKED,
  },
  unit: { use: ({ first }) => first.check('key', 300), used: 300, options: { unit: 10 } },
  'a limit of the call': {
    use: ({ first }) => first.check('key', 30, { limit: 50 }),
    used: 30,
    usedOfBucket: 60, // the same part of the rule's own limit
  },
  'refund by key': {
    use: async ({ first }) => {
      await first.check('key', 30)
      assert.is(await first.refund('key', 10), 10)
      await first.check('key', 5)
    },
    used: 25,
  },
  'refund by key of another process, seen': {
    use: async ({ first, second }) => {
      await first.check('key', 30)
      assert.is(await second.refund('key', 10), 10)
      await first.check('key', 5)
    },
    used: 25,
  },
  'refund of a decision': {
    use: async ({ first }) => {
      await first.check('key', 30)
      assert.is(await first.refund(await first.check('key', 10)), 10)
    },
    used: 30,
  },
  'clear, and a check': {
    use: async ({ first }) => {
      await first.check('key', 30)
      await first.clear('key')
      await first.check('key', 5)
    },
    used: 5,
  },
  'clear by another process, seen': {
    use: async ({ first, second }) => {
      await first.check('key', 30)
      await second.clear('key')
      await first.check('key', 5)
    },
    used: 5,
  },
  'a block that was lifted': {
    use: async ({ first, second }) => {
      await first.check('key', 10)
      await second.block('key', '1h')
      await second.unblock('key')
      await first.check('key', 20)
    },
    used: 30,
  },
  'several rules': {
    use: ({ first }) => first.check('key', 30),
    used: 30,
    options: { rules: [{ name: 'hour', limit: 1_000, window: '1h', algorithm: 'fixed-window' }] },
    not: NOT_PACKED,
  },
  'a group': {
    use: async ({ first, second }) => {
      const both = group({ only: first })
      await both.check({ only: 'key' }, 10)
      await (await both.reserve({ only: 'key' }, 5)).commit(15)
      await both.refund(await both.check({ only: 'key' }, 20))
      await second.check('key', 5)
    },
    used: 30,
    not: NOT_PACKED,
  },
  shards: { use: ({ first }) => first.check('key', 30), used: 30, options: { shards: [] }, not: NOT_PACKED },
  split: {
    use: async ({ first }) => {
      await first.check('key', 10)
      await first.penalize('key', 20)
    },
    used: 30,
    usedOfBucket: 60, // each part is a bucket of half the limit
    options: { split: 2 },
    not: NOT_PACKED,
  },
  optimistic: {
    use: async ({ first }) => {
      await first.check('key', 40)
      assert.is(await first.refund('key', 10), 10)
      await (await first.reserve('key', 5)).commit(10)
    },
    used: 40,
    options: { optimistic: true },
    not: ['sliding-window', 'fixed-window', 'token-bucket', 'sliding-counter'],
  },
}

/** What takes the keys away. */
const LOSSES: Readonly<Record<string, (server: Server, admin: Redis) => Promise<unknown>>> = {
  'a flush': (_, admin) => admin.flushall(),
  'an eviction': async (_, admin) => admin.unlink(await admin.keys('*')),
  'a restart without data': restart,
  // Of that, what the processes have charged is not in the copy.
  'a failover to a copy from before': async (server, admin) => {
    await admin.flushall()
    await admin.set('other', 'of somebody else')
    await admin.save()
    await restart(server)
  },
}

async function restart(server: Server): Promise<void> {
  await server.kill()
  await server.restart()
}

interface Cell extends Stage {
  readonly name: string
  readonly way: Way
  readonly used: number
  readonly all: readonly RedisLimiter[]
}

for (const [at, library] of LIBRARIES.entries()) {
  // In the quick tests each algorithm has one of the libraries.
  const some = ALGORITHMS.filter((_, i) => sized({ quick: i % LIBRARIES.length === at, full: true }))
  for (const algorithm of some) {
    test(`${library}, ${algorithm}: every way of charging is restored, after every loss`, async () => {
      const dir = mkdtempSync(join(tmpdir(), 'millrace-ways-'))
      const server = await startRedis({ dir })
      const admin = new Redis(server.port, '127.0.0.1')
      admin.on('error', () => {}) // it connects again
      let nowMs = START_MS
      const cells = Object.entries(WAYS)
        .filter(([, { not = [] }]) => !not.includes(algorithm))
        .map(([name, way]): Cell => {
          const all = [1, 2].map(() =>
            limiterOf(CLIENTS[library](server.port), name, algorithm, way, () => nowMs),
          )
          const [first, second] = all as [RedisLimiter, RedisLimiter]
          const used = (algorithm === 'token-bucket' ? way.usedOfBucket : undefined) ?? way.used
          return { name, way, used, all, first, second }
        })
      try {
        await Promise.all(cells.map(({ way, ...stage }) => way.use(stage)))
        for (const { name, used, first } of cells) assert.is(await first.usage('key'), used, name)
        let losses = 0
        for (const [loss, lose] of Object.entries(LOSSES)) {
          await lose(server, admin)
          losses++
          nowMs++ // no two values of a key are born in the same millisecond
          await Promise.all(cells.map((cell) => assertRestored(cell, loss, losses, algorithm)))
        }
      } finally {
        admin.disconnect()
        await Promise.all(cells.flatMap(({ all }) => all.map((limiter) => limiter.close())))
        await server.stop()
        rmSync(dir, { recursive: true })
      }
    })
  }
}

function limiterOf(
  client: NonNullable<RedisOptions['client']>,
  prefix: string,
  algorithm: Algorithm,
  { options = {} }: Way,
  testTime: () => number,
): RedisLimiter {
  const { rules = [], countRefused, unit, shards, ...others } = options
  const own = { name: 'own', limit: LIMIT * (unit ?? 1), window: WINDOW_MS, algorithm }
  return createRedisLimiter({
    ...{ prefix, deadline: '1m', testTime, ...others },
    ...(shards === undefined ? { client } : { shards: [client] }),
    rules: [{ ...own, ...(countRefused && { countRefused }), ...(unit && { unit }) }, ...rules],
  })
}

/** Each process asks for the key, of a split one until it has met both parts. */
async function assertRestored(
  { name, way, used: expected, all, first }: Cell,
  loss: string,
  losses: number,
  algorithm: Algorithm,
): Promise<void> {
  const title = `${name}, after loss ${losses}: ${loss}`
  // A process rounds what it has in a bucket up to a whole token.
  const most = expected + (algorithm === 'token-bucket' ? losses * all.length * (way.options?.unit ?? 1) : 0)
  let used = 0
  await poll(async () => {
    for (const limiter of all) await limiter.peek('key')
    used = await first.usage('key').catch(() => 0) // the connection is not back
    return used >= expected
  }, title).catch((error) => {
    throw new Error(`${title}: ${used} of ${expected}: ${error.message}`)
  })
  // What comes later would be too much.
  for (const limiter of all) await limiter.peek('key')
  used = await first.usage('key')
  assert.ok(used <= most, `${title}: ${used} of ${expected}`)
}

/** How a random run may differ from one that has lost nothing. */
interface Bounds {
  /** Whether any process refunds by key, also what others have charged. */
  readonly refundsByKey: boolean
}

const seeds = (count: number) => Array.from({ length: count }, (_, i) => i + 1)
/** Of the quick ones, a refund of a decision meets two windows of a counter (7), and one by key what others charged (24). */
const seedsFor = (refundsByKey: boolean) =>
  sized({ quick: [refundsByKey ? 24 : 7], full: seeds(4), long: seeds(40) })

for (const algorithm of ALGORITHMS) {
  for (const refundsByKey of [false, true]) {
    const claim = refundsByKey ? 'with refunds by key, no less counts' : 'as much counts'
    test(`${algorithm}: after random losses, ${claim} as without a loss`, async () => {
      const server = await startRedis()
      const client = new Redis(server.port, '127.0.0.1')
      try {
        for (const seed of seedsFor(refundsByKey)) await runRandom(client, algorithm, seed, { refundsByKey })
      } finally {
        client.disconnect()
        await server.stop()
      }
    })
  }
}

const PROCESSES = 3
const OPERATIONS = 120
/** The charges of a process that are closer than a thirty-second of the window are restored as of the last of them. */
const STEP_MS = 2_000

/** The same operations on a key that is lost now and then, and on one that is not. Nothing is refused. */
async function runRandom(client: Redis, algorithm: Algorithm, seed: number, { refundsByKey }: Bounds) {
  const random = randomOf(seed)
  let nowMs = START_MS
  const nodes = Array.from({ length: PROCESSES }, () =>
    ['lost', 'kept'].map((kind) =>
      createRedisLimiter({
        ...{ client, prefix: `${seed}${refundsByKey} ${kind}`, deadline: '1m', testTime: () => nowMs },
        ...{ limit: 2_000, window: WINDOW_MS, algorithm },
      }),
    ),
  ) as [lost: RedisLimiter, kept: RedisLimiter][]
  try {
    const [lost, kept] = nodes[0]!
    let losses = 0
    let refund: (() => Promise<unknown>) | undefined
    for (let i = 0; i < OPERATIONS; i++) {
      if (random() < 0.3) nowMs += STEP_MS * Math.ceil(4 * random())
      if (random() < 0.1) {
        await client.del(`mr:1:${seed}${refundsByKey} lost:{key}:default`)
        nowMs++ // no two values of a key are born in the same millisecond
        refund = undefined // a decision from before a loss gives nothing back
        losses++
        const before = await restored(nodes)
        for (const [node] of nodes) await node.peek('key')
        const expected = await kept.usage('key')
        const title = `seed ${seed}, operation ${i}, loss ${losses}`
        await poll(async () => (await lost.usage('key')) >= expected, `${title}: ${expected} units`).catch(
          async (error) => {
            throw new Error(
              `${error.message}, but ${await lost.usage('key')}; ${(await restored(nodes)) - before} restore`,
            )
          },
        )
        const slack = algorithm === 'token-bucket' ? PROCESSES * losses : 0
        const used = await lost.usage('key')
        if (!refundsByKey) assert.ok(used <= expected + slack, `${title}: ${used} of ${expected}`)
        continue
      }
      refund = (await operate(random, nodes, refundsByKey, refund)) ?? refund
    }
    assert.ok(losses > 2)
  } finally {
    await Promise.all(nodes.flat().map((limiter) => limiter.close()))
  }
}

async function restored(nodes: readonly (readonly RedisLimiter[])[]): Promise<number> {
  const all = await Promise.all(nodes.map(([node]) => node!.stats()))
  return all.reduce((sum, stats) => sum + stats.restored, 0)
}

/** Returns what gives back the charges of this operation. */
async function operate(
  random: Random,
  nodes: readonly (readonly RedisLimiter[])[],
  refundsByKey: boolean,
  refund: (() => Promise<unknown>) | undefined,
): Promise<(() => Promise<unknown>) | undefined> {
  const node = nodes[Math.floor(PROCESSES * random())]!
  const cost = 1 + Math.floor(9 * random())
  const other = 1 + Math.floor(9 * random())
  const on = (act: (limiter: RedisLimiter) => Promise<unknown>) => Promise.all(node.map(act))
  const kind = random()
  if (kind < 0.15) await on((limiter) => limiter.penalize('key', cost))
  else if (kind < 0.35) await on(async (limiter) => (await limiter.reserve('key', cost)).commit(other))
  else if (kind < 0.45) await on((limiter) => limiter.peek('key'))
  else if (kind < 0.55) await refund?.()
  else if (kind < 0.65 && refundsByKey) await on((limiter) => limiter.refund('key', other))
  else {
    const decisions = await Promise.all(node.map((limiter) => limiter.check('key', cost)))
    assert.ok(decisions.every(({ allowed }) => allowed))
    return () => Promise.all(node.map((limiter, i) => limiter.refund(decisions[i]!)))
  }
  return undefined
}

test.run()
