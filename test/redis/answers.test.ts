// What servers answer instead of a reply: the call is an outage with this reason, and when the server answers again,
// Redis decides again, by the same limiter.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { MillraceError } from 'millrace'
import { createRedisLimiter, type RedisLimiter, type RedisLimiterOptions } from 'millrace/redis'
import { createClient } from 'redis'
import * as assert from 'uvu/assert'
import { ANSWERS, codeOf } from '#millrace/remote/answers.js'
import { readText } from '../package/root.js'
import { CLIENTS, LIBRARIES, type Library } from './clients.js'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import type { Server } from './process.js'
import { startProxy, type TcpProxy } from './proxy.js'
import { startRedis } from './servers.js'
import { redisTest as test } from './skip.js'
import { sendOnce } from './wire.js'

interface Scene {
  readonly server: Server
  /** A connection that was open before. */
  readonly owner: Redis
  /** By which the limiters connect. */
  readonly proxy: TcpProxy
  /** What ends after the test. */
  readonly others: Server[]
}

interface Case {
  readonly args?: () => readonly string[]
  readonly password?: string
  /** The server answers so from now on. */
  readonly begin: (scene: Scene) => unknown
  /** The server, or another one behind its address, runs calls again. */
  readonly end: (scene: Scene) => unknown
}

const config = (name: string, before: string, after: string): Case => ({
  begin: ({ owner }) => owner.config('SET', name, before),
  end: ({ owner }) => owner.config('SET', name, after),
})

const killOthers = ({ owner }: Scene) => owner.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')

const CLUSTER_DOWN = {
  args: () => ['--cluster-enabled', 'yes'],
  begin: ({ owner }: Scene) => owner.cluster('DELSLOTS', 0),
  end: ({ owner }: Scene) => owner.cluster('ADDSLOTS', 0),
}

const CASES: Readonly<Record<string, Case>> = {
  'READONLY, and another server takes the address': {
    async begin({ server, owner, others }) {
      const other = await startRedis({ args: ['--replicaof', `${HOST} ${server.port}`] })
      others.push(other)
      await poll(async () => (await sendOnce(other.port, 'ROLE'))[3] === 'connected', 'the replica')
      await sendOnce(other.port, 'REPLICAOF', 'NO', 'ONE')
      await owner.replicaof(HOST, other.port)
    },
    end: ({ proxy, others }) => proxy.point(others[0]!.port),
  },
  'READONLY, and the server is promoted again': {
    begin: ({ owner }) => owner.replicaof(HOST, 1),
    end: ({ owner }) => owner.replicaof('NO', 'ONE'),
  },
  MASTERDOWN: {
    args: () => ['--replica-serve-stale-data', 'no'],
    begin: ({ owner }) => owner.replicaof(HOST, 1),
    end: ({ owner }) => owner.replicaof('NO', 'ONE'),
  },
  NOAUTH: {
    async begin(scene) {
      await scene.owner.config('SET', 'requirepass', 'secret')
      await killOthers(scene)
    },
    end: ({ owner }) => owner.config('SET', 'requirepass', ''),
  },
  WRONGPASS: {
    password: 'right',
    async begin(scene) {
      await scene.owner.config('SET', 'requirepass', 'another')
      await killOthers(scene)
    },
    end: ({ owner }) => owner.config('SET', 'requirepass', 'right'),
  },
  NOPERM: {
    begin: ({ owner }) => owner.acl('SETUSER', 'default', '-evalsha'),
    end: ({ owner }) => owner.acl('SETUSER', 'default', '+evalsha'),
  },
  OOM: config('maxmemory', '1', '0'),
  NOREPLICAS: config('min-replicas-to-write', '1', '0'),
  MISCONF: {
    async begin({ owner }) {
      // No snapshot can be written, since a folder has its name.
      const [, folder] = (await owner.config('GET', 'dir')) as [string, string]
      const [, file] = (await owner.config('GET', 'dbfilename')) as [string, string]
      mkdirSync(join(folder, file))
      await owner.config('SET', 'save', '3600 1000000')
      await owner.bgsave()
      await poll(
        async () => (await owner.info('persistence')).includes('last_bgsave_status:err'),
        'the error',
      )
    },
    end: ({ owner }) => owner.config('SET', 'save', ''),
  },
  BUSY: {
    args: () => ['--lua-time-limit', '1'],
    begin({ server }) {
      sendOnce(server.port, 'EVAL', 'while true do end', 0).catch(() => {}) // it is killed
    },
    end: ({ server }) => sendOnce(server.port, 'SCRIPT', 'KILL'),
  },
  LOADING: {
    args: () => ['--enable-debug-command', 'yes', '--loading-process-events-interval-bytes', '1024'],
    async begin({ server, owner }) {
      await owner.call('DEBUG', 'POPULATE', '10000', 'filler', '1000')
      await owner.config('SET', 'key-load-delay', '10000')
      sendOnce(server.port, 'DEBUG', 'RELOAD').catch(() => {}) // the tests don't wait for it
      await poll(
        () =>
          owner.ping().then(
            () => false,
            (error) => codeOf(error) === 'LOADING',
          ),
        'the loading',
      )
    },
    end: ({ owner }) => owner.config('SET', 'key-load-delay', '0'),
  },
  CLUSTERDOWN: CLUSTER_DOWN,
  'CLUSTERDOWN, but reads are answered': {
    ...CLUSTER_DOWN,
    args: () => [...CLUSTER_DOWN.args(), '--cluster-allow-reads-when-down', 'yes'],
  },
}

/** Answers of several nodes are in `on-cluster.test.ts`; those of start, in `refused.test.ts`. */
const OF_CLUSTERS = ['MOVED', 'ASK', 'TRYAGAIN', 'CROSSSLOT']
/** What is answered to other commands than those of a limiter, and to connections from elsewhere. */
const OF_OTHERS = ['UNKILLABLE', 'EXECABORT', 'DENIED', 'UNKNOWN']

const limiterOf = (library: Library, { port }: { port: number }, password: string | undefined) => {
  const client: RedisLimiterOptions['client'] =
    password === undefined
      ? CLIENTS[library](port)
      : library === 'ioredis'
        ? new Redis(port, HOST, { lazyConnect: true, password })
        : createClient({ url: `redis://${HOST}:${port}`, password })
  return createRedisLimiter({ client, prefix: 'test', limit: 1_000_000, window: '1h' })
}

const decided = (limiter: RedisLimiter) =>
  poll(async () => (await limiter.check('key')).source === 'redis', 'a decision of Redis')

const errorOf = (answer: Promise<unknown>): Promise<MillraceError & { cause: Error }> =>
  answer.then(
    () => assert.unreachable('resolved'),
    (error) => error,
  )

/** Charges until the reason of an outage is this answer, and a change of a key says so too. */
async function failsBy(limiter: RedisLimiter, code: string): Promise<void> {
  let last: unknown
  await poll(async () => {
    await limiter.check('key')
    last = (await limiter.stats()).lastFailure
    return codeOf(last) === code
  }, `${code}`).catch((error) => {
    throw new Error(`${error.message}, but ${last}`)
  })
  const { expected } = ANSWERS[code]!
  await poll(async () => {
    const error = await errorOf(limiter.penalize('key', 1))
    assert.is(error.code, 'ERR_MILLRACE_OUTAGE')
    last = error.message
    return error.message.includes(expected)
  }, `an error with ${expected}`).catch((error) => {
    throw new Error(`${error.message}, but ${last}`)
  })
}

for (const [name, { args = () => [], password, begin, end }] of Object.entries(CASES)) {
  test(`${name}: an outage with this reason, then Redis decides again, by ${LIBRARIES.join(' and ')}`, async () => {
    const secret = password === undefined ? [] : ['--requirepass', password]
    const server = await startRedis({ args: [...args(), ...secret] })
    const owner = new Redis(server.port, HOST, password === undefined ? {} : { password })
    if (name.startsWith('CLUSTERDOWN')) await owner.cluster('ADDSLOTSRANGE', 0, 16_383)
    const proxy = await startProxy(server.port)
    const scene: Scene = { server, owner, proxy, others: [] }
    const limiters = LIBRARIES.map((library) => limiterOf(library, proxy, password))
    try {
      await Promise.all(limiters.map((limiter) => limiter.ready()))
      await Promise.all(limiters.map(decided))
      await begin(scene)
      const code = name.split(',', 1)[0]!
      await Promise.all(limiters.map((limiter) => failsBy(limiter, code)))
      await end(scene)
      await Promise.all(limiters.map(decided))
    } finally {
      await Promise.all(limiters.map((limiter) => limiter.close()))
      proxy.close()
      owner.disconnect()
      await Promise.all([server, ...scene.others].map((each) => each.kill()))
    }
  })
}

for (const command of ['EVALSHA', 'EVAL', 'GET', 'SET', 'PEXPIRE'])
  test(`a server without ${command}: ready rejects and says so`, async () => {
    const server = await startRedis({ args: ['--rename-command', command, 'other'] })
    try {
      for (const library of LIBRARIES) {
        const limiter = limiterOf(library, server, undefined)
        try {
          const error = await errorOf(limiter.ready())
          assert.equal([error.code, error.value], ['ERR_MILLRACE_OUTAGE', 'UNKNOWN'])
          assert.match(error.message, /has the commands of the script.*unknown (Redis )?command/i)
        } finally {
          await limiter.close()
        }
      }
    } finally {
      await server.stop()
    }
  })

test('every answer of the table is that of a test, and stands in the docs', () => {
  const tested = Object.keys(CASES).map((name) => name.split(',', 1)[0]!)
  const all = [...new Set(tested), 'NOSCRIPT', ...OF_CLUSTERS, ...OF_OTHERS]
  assert.equal(Object.keys(ANSWERS).sort(), all.sort())
  const rows = readText('docs/how-to/redis.md')
    .split('\n')
    .filter((line) => /^\| `[A-Z]/.test(line))
  const named = rows.flatMap((row) =>
    [...row.split('|')[1]!.matchAll(/`([A-Z]+)`/g)].map(([, code]) => code!),
  )
  assert.equal(named.sort(), all.sort())
})

test('the code of an answer, as servers and clients of any version write it', () => {
  for (const [message, code] of [
    ["READONLY You can't write against a read only replica. script: 0f2, on @user_script:1.", 'READONLY'],
    [
      "ERR Error running script (call to f_3a): @user_script:12: @user_script: 12: -OOM command not allowed when used memory > 'maxmemory'.",
      'OOM',
    ],
    [
      "ERR Error running script (call to f_3a): @user_script:7: -READONLY You can't write against",
      'READONLY',
    ],
    ['Too many Cluster redirections. Last error: ReplyError: MOVED 866 127.0.0.1:6379', 'MOVED'],
    ["ERR The user executing the script can't run this command or subcommand", 'NOPERM'],
    [
      "ERR Error running script (call to f_3a): @user_script:1: @user_script: 1: The user executing the script can't run",
      'NOPERM',
    ],
    ["ERR ACL failure in script: User limits has no permissions to run the 'set' command", 'NOPERM'],
    ['ERR ACL failure in script: No permissions to access a key', 'NOPERM'],
    ['ERR invalid password', 'WRONGPASS'],
    ['ERR unknown command `EVALSHA`, with args beginning with: `0`, `1`, ', 'UNKNOWN'],
    ['ERR Unknown Redis command called from script script: 0f2, on @user_script:1.', 'UNKNOWN'],
    ['ERR Unknown command called from script script: 0f2, on @user_script:1.', 'UNKNOWN'],
    [
      'ERR Error running script (call to f_3a): @user_script:1: @user_script: 1: Unknown Redis command called from',
      'UNKNOWN',
    ],
    ['ERR Script attempted to execute a write command while the cluster is down and readonly', 'CLUSTERDOWN'],
    ['ERR Error running script (call to f_3a): @user_script:1: attempt to index nil', 'ERR'],
    ['connect ECONNREFUSED 127.0.0.1:6379', undefined],
    ['Connection is closed.', undefined],
  ])
    assert.is(codeOf(new Error(message)), code, message)
})

test.run()
