// Why a server can't be reached: statistics, errors and `ready` say it.
import { Cluster, Redis } from 'ioredis'
import type { AsyncLimiter, MillraceError } from 'millrace'
import { createRedisLimiter, type RedisLimiterOptions, type RedisStats } from 'millrace/redis'
import { createClient } from 'redis'
import * as assert from 'uvu/assert'
import { CLIENTS, LIBRARIES, type Library } from './clients.js'
import { poll } from './poll.js'
import { freePort, HOST } from './ports.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'
import { sendOnce } from './wire.js'

const limiterOf = (client: RedisLimiterOptions['client'], options: Partial<RedisLimiterOptions> = {}) =>
  createRedisLimiter({ client, prefix: 'test', limit: 4, window: '1h', ...options })

const WITH_PASSWORD = {
  ioredis: (port: number, password: string) => new Redis(port, HOST, { lazyConnect: true, password }),
  'node-redis': (port: number, password: string) =>
    createClient({ url: `redis://${HOST}:${port}`, password }),
} satisfies Record<Library, unknown>

/** Asks until an outage has this reason. Early calls may be late before the connection has failed. */
async function failedBy(limiter: AsyncLimiter, reason: RegExp): Promise<void> {
  let last: string | undefined
  await poll(async () => {
    assert.is((await limiter.check('key')).source, 'outage')
    last = ((await limiter.stats()) as RedisStats).lastFailure
    return reason.test(last ?? '')
  }, `${reason}`).catch((error) => {
    throw new Error(`${error.message}, but ${last}`)
  })
}

const usable = (limiter: AsyncLimiter) =>
  poll(async () => (await limiter.peek('any')).source === 'redis', 'a decision of Redis')

const errorOf = (answer: Promise<unknown>): Promise<MillraceError> =>
  answer.then(
    () => assert.unreachable('resolved'),
    (error) => error,
  )

test('Cluster: an unknown host and a node that refuses connections are reasons', async () => {
  const port = await freePort()
  for (const [host, reason] of [
    ['nowhere.invalid', /^getaddrinfo \w+ nowhere\.invalid$/],
    [HOST, new RegExp(`^no connection to ${HOST}:${port}$`)],
  ] as const) {
    const limiter = limiterOf(new Cluster([{ host, port }], { lazyConnect: true }))
    try {
      await failedBy(limiter, reason)
    } finally {
      await limiter.close()
    }
  }
})

for (const library of LIBRARIES) {
  for (const [kind, options] of [['window', {}]] as const) {
    test(`${library}, ${kind}: a refused connection is a reason, until there is one`, async () => {
      const server = await startRedis()
      await server.kill()
      const limiter = limiterOf(CLIENTS[library](server.port), options)
      try {
        const refused = new RegExp(`^connect ECONNREFUSED ${HOST}:${server.port}$`)
        await failedBy(limiter, refused)
        const error = await errorOf(limiter.clear('key'))
        assert.is(error.code, 'ERR_MILLRACE_OUTAGE')
        assert.match((error.cause as Error).message, refused)
        const ready = limiter.ready() // waits for the server
        await server.restart()
        await ready
        await usable(limiter)
        await server.pause()
        await failedBy(limiter, /deadline/)
        server.resume()
      } finally {
        server.resume()
        await limiter.close()
        await server.stop()
      }
    })
  }

  test(`${library}: an unknown host is a reason`, async () => {
    const limiter = limiterOf(CLIENTS[library](await freePort(), 'nowhere.invalid'))
    try {
      await failedBy(limiter, /^getaddrinfo \w+ nowhere\.invalid$/)
    } finally {
      await limiter.close()
    }
  })

  test(`${library}: of a host with several addresses, the errors of all`, async () => {
    const limiter = limiterOf(CLIENTS[library](await freePort(), 'localhost'))
    try {
      await failedBy(limiter, /^connect ECONNREFUSED /)
    } finally {
      await limiter.close()
    }
  })

  for (const [kind, client, reason] of [
    ['a wrong password', (port: number) => WITH_PASSWORD[library](port, 'wrong'), /^WRONGPASS /],
    ['a missing password', (port: number) => CLIENTS[library](port), /^NOAUTH /],
  ] as const) {
    test(`${library}: ${kind} is a reason, ready rejects, and the server may be mended`, async () => {
      const server = await startRedis({ args: ['--requirepass', 'right'] })
      const limiter = limiterOf(client(server.port))
      const owner = new Redis(server.port, HOST, { password: 'right' })
      try {
        const error = await errorOf(limiter.ready())
        assert.is(error.code, 'ERR_MILLRACE_OUTAGE')
        assert.match((error.cause as Error).message, reason)
        assert.ok(error.message.includes((error.cause as Error).message))
        await failedBy(limiter, reason)
        // With `wrong` as its password, and for the other client with none.
        await owner.config('SET', 'requirepass', kind === 'a wrong password' ? 'wrong' : '')
        await poll(() => limiter.ready().then(() => true, isOutage), 'ready')
        await usable(limiter)
      } finally {
        owner.disconnect()
        await limiter.close()
        await server.stop()
      }
    })
  }

  for (const [policy, options] of [
    ['allkeys-lru', {}],
    ['allkeys-lru', { otherKeysExpire: true }],
    ['volatile-lru', {}],
    ['volatile-random', {}],
    ['volatile-ttl', {}],
  ] as const) {
    test(`${library}: a server with ${policy} is refused, and used again when it is mended`, () =>
      assertMended(library, policy, options))
  }

  test(`${library}: a server of other keys that expire may evict by volatile-*`, async () => {
    const server = await startRedis({ args: ['--maxmemory-policy', 'volatile-lru'] })
    const limiter = limiterOf(CLIENTS[library](server.port), { otherKeysExpire: true })
    try {
      await limiter.ready()
      assert.is((await limiter.check('key')).source, 'redis')
    } finally {
      await limiter.close()
      await server.stop()
    }
  })

  test(`${library}: a policy that is set while the limiter runs is refused after the first loss`, async () => {
    const server = await startRedis()
    const limiter = limiterOf(CLIENTS[library](server.port), { onOutage: 'open' })
    try {
      await limiter.ready()
      await limiter.check('key')
      await sendOnce(server.port, 'CONFIG', 'SET', 'maxmemory-policy', 'volatile-lru')
      await poll(async () => {
        // The limiter looks at the server at most once a second.
        await sendOnce(server.port, 'FLUSHALL')
        return limiter.check('key').then(
          () => false,
          (error) => !isPolicy(error),
        )
      }, 'the error')
      assert.is((await errorOf(limiter.ready())).option, 'maxmemory-policy')
    } finally {
      await limiter.close()
      await server.stop()
    }
  })

  test(`${library}: of a server without memory, the reason is its answer`, async () => {
    const server = await startRedis({ args: ['--maxmemory', '1', '--maxmemory-policy', 'noeviction'] })
    const limiter = limiterOf(CLIENTS[library](server.port))
    try {
      await limiter.ready()
      await failedBy(limiter, /^OOM /)
    } finally {
      await limiter.close()
      await server.stop()
    }
  })
}

async function assertMended(
  library: Library,
  policy: string,
  options: Partial<RedisLimiterOptions>,
): Promise<void> {
  const server = await startRedis({ args: ['--maxmemory-policy', policy] })
  const limiter = limiterOf(CLIENTS[library](server.port), { onOutage: 'open', deadline: '1m', ...options })
  try {
    for (const act of [() => limiter.ready(), () => limiter.check('key'), () => limiter.clearAll()]) {
      const error = await errorOf(act())
      assert.equal([error.code, error.option], ['ERR_MILLRACE_INVALID_OPTION', 'maxmemory-policy'])
      assert.ok(error.message.includes(policy))
    }
    await sendOnce(server.port, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    await poll(
      () => limiter.check('key').then(({ source }) => source === 'redis', isPolicy),
      'a decision of Redis',
    )
    await limiter.ready()
  } finally {
    await limiter.close()
    await server.stop()
  }
}

for (const [kind, options] of [
  ['window', {}],
  ['counter', { algorithm: 'sliding-counter' }],
  ['log', { algorithm: 'sliding-log' }],
] as const) {
  test(`${kind}: a server without memory still gives back and forgets, and says why it takes no more`, async () => {
    const server = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] })
    const limiter = limiterOf(CLIENTS.ioredis(server.port), { limit: 100, deadline: '1m', ...options })
    try {
      const decisions = []
      for (const key of ['a', 'b', 'c', 'd']) decisions.push(await limiter.check(key, 50))
      assert.ok(decisions.every(({ source }) => source === 'redis'))
      await limiter.block('c', '10m')
      await sendOnce(server.port, 'CONFIG', 'SET', 'maxmemory', '1')
      for (let i = 0; i < 10; i++) assert.is((await limiter.check('a')).source, 'outage') // the breaker opens
      const full = await errorOf(limiter.penalize('a', 1))
      assert.is(full.value, 'OOM')
      assert.match(full.message, /^client: expected a server with free memory \(the reason: OOM /)
      assert.is(await limiter.refund('a', 10), 10)
      assert.is(await limiter.refund(decisions[1]!), 50)
      assert.is(await limiter.unblock('c'), true)
      await limiter.clear('d')
      const used = () => Promise.all(['a', 'b', 'c', 'd'].map((key) => limiter.usage(key)))
      assert.equal(await used(), [40, 0, 50, 0])
      await limiter.clearAll()
      assert.equal(await used(), [0, 0, 0, 0])
      await sendOnce(server.port, 'CONFIG', 'SET', 'maxmemory', '0')
      await usable(limiter)
    } finally {
      await limiter.close()
      await server.stop()
    }
  })
}

test('a transaction gives back nothing while the memory of the server is full, and says why', async () => {
  const server = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] })
  const options = { algorithm: 'sliding-log', optimistic: true, limit: 100, deadline: '1m' } as const
  const limiter = limiterOf(CLIENTS.ioredis(server.port), options)
  try {
    const decision = await limiter.check('a', 50)
    await sendOnce(server.port, 'CONFIG', 'SET', 'maxmemory', '1')
    for (const act of [
      () => limiter.penalize('a', 1),
      () => limiter.refund('a', 10),
      () => limiter.refund(decision),
      () => limiter.clear('a'),
      () => limiter.clearAll(),
    ]) {
      const full = await errorOf(act())
      assert.equal([full.code, full.value], ['ERR_MILLRACE_OUTAGE', 'OOM'])
      assert.match(full.message, /expected a server with free memory/)
    }
    await sendOnce(server.port, 'CONFIG', 'SET', 'maxmemory', '0')
    await usable(limiter)
    assert.is(await limiter.refund(decision), 50, 'what was refused has changed nothing')
  } finally {
    await limiter.close()
    await server.stop()
  }
})

/** False for what is to be asked again. */
const isOutage = ({ code }: MillraceError): boolean => {
  assert.is(code, 'ERR_MILLRACE_OUTAGE')
  return false
}
const isPolicy = ({ option }: MillraceError): boolean => {
  assert.is(option, 'maxmemory-policy')
  return false
}

test.run()
