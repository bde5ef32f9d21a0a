// A user of the server with the permissions that `docs/how-to/redis.md` lists can do everything; with fewer, the reason is
// the server's own error.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { AsyncLimiter, MillraceError } from 'millrace'
import { createRedisLimiter, type RedisLimiterOptions, type RedisStats } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { root } from '../package/root.js'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'
import { sendOnce } from './wire.js'

const PAGE = readFileSync(join(root, 'docs/how-to/redis.md'), 'utf8')
const ALWAYS = PAGE.match(/^~mr:1:api:\* (\+.*)$/m)![1]!.split(' ')
/** Those of a row of the table. */
const alsoFor = (what: string): string[] => {
  const [, , rights] = PAGE.split('\n')
    .find((line) => line.startsWith(`| ${what} |`))!
    .split(/(?<!\\)\|/)
  return rights!.trim().replaceAll('`', '').replaceAll('\\|', '|').split(' ')
}

type Options = object

const errorOf = (answer: Promise<unknown>): Promise<MillraceError & { cause: Error }> =>
  answer.then(
    () => assert.unreachable('resolved'),
    (error) => error,
  )

/** Runs with a limiter whose user has these rights. */
async function withRights(
  rights: readonly string[],
  options: Options,
  use: (limiter: AsyncLimiter) => Promise<void>,
  isReady = (ready: Promise<void>): Promise<unknown> => ready,
): Promise<void> {
  const server = await startRedis()
  await sendOnce(server.port, 'ACL', 'SETUSER', 'limits', 'on', '>secret', '~mr:1:api:*', ...rights)
  const client = new Redis(server.port, HOST, { lazyConnect: true, username: 'limits', password: 'secret' })
  const limiter = createRedisLimiter({
    client,
    prefix: 'api',
    deadline: '1m',
    ...options,
  } as unknown as RedisLimiterOptions)
  try {
    await isReady(limiter.ready())
    await use(limiter)
  } finally {
    await limiter.close()
    await server.stop()
  }
}

async function useAll(limiter: AsyncLimiter): Promise<void> {
  const decision = await limiter.check('a', 2)
  assert.is(decision.source, 'redis')
  assert.is(await limiter.refund(decision), 2)
  await limiter.check('a', 3)
  assert.is(await limiter.refund('a', 1), 1)
  await limiter.check('a') // keeps the time that a refund by key has given the value
  assert.ok(await limiter.penalize('a', 1))
  assert.is(await limiter.usage('a'), 4)
  assert.is((await limiter.peek('a')).remaining, 1)
  const batch = await limiter.checkMany(['a', 'b', 'c'])
  assert.equal([...batch.allowed], [1, 1, 1])
  assert.ok(await limiter.block('a', '1m'))
  assert.is((await limiter.check('a')).allowed, false)
  assert.ok(await limiter.unblock('a'))
  await limiter.block('a', Number.POSITIVE_INFINITY)
  await limiter.clear('a')
  assert.is((await limiter.check('a')).remaining, 4)
}

const WINDOW = { limit: 5, window: '1h' } as const
const COUNTER = { ...WINDOW, algorithm: 'sliding-counter' } as const
const LOG = { ...WINDOW, algorithm: 'sliding-log' } as const
const RULES = [
  { name: 'burst', ...WINDOW },
  { name: 'bucket', limit: 500, window: '1h', algorithm: 'token-bucket' },
  { name: 'fixed', limit: 500, window: '1h', algorithm: 'fixed-window' },
]

for (const [name, options, rights] of [
  ['a sliding window', WINDOW, []],
  ['a sliding counter', COUNTER, []],
  ['a sliding log', LOG, alsoFor("`'sliding-log'`")],
  [
    'a log by transactions',
    { ...LOG, optimistic: true },
    [...alsoFor("`'sliding-log'`"), ...alsoFor('`optimistic`')],
  ],
] as [string, Options, string[]][]) {
  test(`${name} needs no other rights than those of the docs`, async () => {
    await withRights([...ALWAYS, ...rights], options, useAll)
    await withRights([...ALWAYS, ...rights, ...alsoFor('`clearAll`')], options, async (limiter) => {
      await limiter.check('a', 5)
      await limiter.clearAll()
      assert.is(await limiter.usage('a'), 0)
    })
  })
}

test('several rules need no other rights than those of the docs', async () => {
  await withRights(ALWAYS, { rules: RULES }, useAll)
})

for (const [name, options, read] of [
  ['a sliding window', WINDOW, '-get'],
  ['a sliding counter', COUNTER, '-get'],
  ['a sliding log', LOG, '-zmscore'],
] as [string, Options, string][]) {
  test(`${name} without the right to read: the reason is the server's error`, async () => {
    const rights = [...ALWAYS, ...alsoFor("`'sliding-log'`"), read]
    const isRefused = async (ready: Promise<void>) => {
      const { code, value, message } = await errorOf(ready)
      assert.equal([code, value], ['ERR_MILLRACE_OUTAGE', 'NOPERM'])
      assert.match(message, REFUSED)
    }
    await withRights(rights, { ...options, deadline: '50ms' }, fails, isRefused)
  })
}

const REFUSED = /can't run this command|has no permissions to (run|access)|No permissions to access/

async function fails(limiter: AsyncLimiter): Promise<void> {
  await poll(async () => {
    assert.is((await limiter.check('a')).source, 'outage')
    return REFUSED.test(((await limiter.stats()) as RedisStats).lastFailure ?? '')
  }, 'the error')
}

for (const [name, rights] of [
  ['neither EVAL nor EVALSHA', [...ALWAYS, '-eval', '-evalsha']],
  ['no EVALSHA', [...ALWAYS, '-evalsha']],
  ['no EVAL', [...ALWAYS, '-eval']],
  ['no SET', [...ALWAYS, '-set']],
  ['no INFO', [...ALWAYS, '-info', '-evalsha']],
  ['no keys of the prefix', [...ALWAYS, 'resetkeys', '~other:*']],
] as [string, string[]][]) {
  test(`a user with ${name}: ready rejects and says so, until the user may`, async () => {
    const server = await startRedis()
    await sendOnce(server.port, 'ACL', 'SETUSER', 'limits', 'on', '>secret', '~mr:1:api:*', ...rights)
    const client = new Redis(server.port, HOST, {
      lazyConnect: true,
      username: 'limits',
      password: 'secret',
    })
    const limiter = createRedisLimiter({ client, prefix: 'api', ...WINDOW })
    try {
      const error = await errorOf(limiter.ready())
      assert.equal([error.code, error.value], ['ERR_MILLRACE_OUTAGE', 'NOPERM'])
      assert.ok(error.message.includes(error.cause.message))
      await fails(limiter)
      await sendOnce(server.port, 'ACL', 'SETUSER', 'limits', '~mr:1:api:*', ...ALWAYS)
      await poll(async () => (await limiter.check('a')).source === 'redis', 'a decision of Redis')
      await limiter.ready()
    } finally {
      await limiter.close()
      await server.stop()
    }
  })
}

test.run()
