// run: full
// Limiters behind a Sentinel: what they do while a replica is promoted, and what is lost.
import { Redis } from 'ioredis'
import { createRedisLimiter, type RedisLimiter } from 'millrace/redis'
import * as assert from 'uvu/assert'
import { poll } from './poll.js'
import { HOST } from './ports.js'
import type { Server } from './process.js'
import { SENTINEL_NAME, type Sentinel, startSentinel } from './sentinel.js'
import { redisTest as test } from './skip.js'
import { sendOnce } from './wire.js'

const NODES = 4

interface Scene {
  readonly watched: Sentinel
  /** The limiters of several processes. */
  readonly nodes: readonly RedisLimiter[]
}

async function scene(act: (scene: Scene) => Promise<void>): Promise<void> {
  const watched = await startSentinel()
  const client = new Redis({
    sentinels: [{ host: HOST, port: watched.sentinel.port }],
    name: SENTINEL_NAME,
    lazyConnect: true,
  })
  const nodes = Array.from({ length: NODES }, () =>
    createRedisLimiter({ client, prefix: 'test', limit: 1_000_000, window: '1h' }),
  )
  try {
    await Promise.all(nodes.map((limiter) => limiter.ready()))
    await act({ watched, nodes })
  } finally {
    await Promise.all(nodes.map((limiter) => limiter.close()))
    await watched.stop()
  }
}

const keysFrom = (name: string) => Array.from({ length: 25 }, (_, i) => `${name} ${i}`)

/** Charges each key by each process. */
const charge = (nodes: readonly RedisLimiter[], keys: readonly string[], cost: number) =>
  Promise.all(nodes.flatMap((limiter) => keys.map((key) => limiter.check(key, cost))))

async function usedBy(limiter: RedisLimiter, keys: readonly string[]): Promise<number> {
  const used = await Promise.all(keys.map((key) => limiter.usage(key)))
  return used.reduce((total, units) => total + units, 0)
}

const decidedByRedis = (nodes: readonly RedisLimiter[]) =>
  poll(async () => {
    const peeked = await Promise.all(nodes.map((limiter) => limiter.peek('any')))
    return peeked.every(({ source }) => source === 'redis')
  }, 'decisions by the promoted replica')

const HARMS: Readonly<Record<string, (primary: Server, sentinel: Server) => Promise<void>>> = {
  'is killed': (primary) => primary.kill(),
  'stands still': (primary) => primary.pause(),
  'is demoted': (_, { port }) => sendOnce(port, 'SENTINEL', 'FAILOVER', SENTINEL_NAME),
}

for (const [kind, harm] of Object.entries(HARMS))
  test(`a primary that ${kind} under load: every call settles, and the promoted replica decides`, () =>
    scene(async ({ watched, nodes }) => {
      const counts = new Map<string, number>()
      let admitted = 0
      let longestMs = 0
      let isOver = false
      const load = async (limiter: RedisLimiter, key: string) => {
        while (!isOver) {
          const startMs = performance.now()
          const { source, allowed } = await limiter.check(key)
          longestMs = Math.max(longestMs, performance.now() - startMs)
          counts.set(source!, (counts.get(source!) ?? 0) + 1)
          if (allowed) admitted++
          await new Promise((resolve) => setTimeout(resolve, 5))
        }
      }
      const keys = keysFrom('load')
      const loads = nodes.flatMap((limiter) => keys.map((key) => load(limiter, key)))
      try {
        await poll(() => admitted > 1_000, 'a load')
        const { primary } = watched
        await watched.failover((old) => harm(old, watched.sentinel))
        // The former primary decides on until it is told that it is a replica.
        await poll(async () => (await callsOf(watched.primary)) > 1_000, 'decisions by the promoted replica')
        await decidedByRedis(nodes)
        primary.resume()
      } finally {
        isOver = true
        await Promise.all(loads)
      }
      const used = await usedBy(nodes[0]!, keys)
      console.log(
        `a primary that ${kind}: ${JSON.stringify(Object.fromEntries(counts))}, longest ${longestMs.toFixed(1)} ms, ` +
          `admitted ${admitted}, counted ${used}, lost at least ${Math.max(0, admitted - used)} units`,
      )
    }))

test('a replica that lags is promoted: units are lost, and each process restores keys in one call', () =>
  scene(async ({ watched, nodes }) => {
    const [early, late] = [keysFrom('early'), keysFrom('late')]
    const expected = NODES * 25 * 2
    const { primary, replica } = watched
    await charge(nodes, early, 2)
    await sendOnce(primary.port, 'WAIT', 1, 0)
    await poll(async () => (await usedOn(replica)) === (await usedOn(primary)), 'the replica to have all')
    await replica.pause()
    // What is behind more than the buffers of the connection hold never reaches the replica.
    for (let i = 0; i < 8; i++) await sendOnce(primary.port, 'SET', 'filler', 'x'.repeat(4_000_000))
    await charge(nodes, late, 2)
    assert.is(await usedBy(nodes[0]!, late), expected)
    await watched.failover(async () => {
      await primary.kill()
      replica.resume()
    })
    await decidedByRedis(nodes)
    const lost = {
      early: expected - (await usedBy(nodes[0]!, early)),
      late: expected - (await usedBy(nodes[0]!, late)),
    }
    console.log('units lost by the promotion of a replica that lags', lost)
    assert.equal(lost, { early: 0, late: expected })
    const calls = await callsOf(replica)
    await Promise.all(nodes.flatMap((limiter) => late.map((key) => limiter.peek(key))))
    for (const limiter of nodes)
      await poll(async () => (await limiter.stats()).restored === late.length, 'the process has restored all')
    // The peeks of a process share a call. Each key is restored by one.
    assert.is((await callsOf(replica)) - calls, NODES + NODES * late.length)
    assert.is(await usedBy(nodes[0]!, late), expected)
    assert.is(await usedBy(nodes[0]!, early), expected)
  }))

test('close ends the connections to the server and to the sentinel', () =>
  scene(async ({ watched, nodes }) => {
    const clients = async () => {
      const replies = await Promise.all(
        [watched.primary, watched.sentinel].map(({ port }) => sendOnce(port, 'CLIENT', 'LIST')),
      )
      return replies.join('').split('\n').length
    }
    const sockets = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length
    const before = await clients()
    await Promise.all(nodes.map((limiter) => limiter.close()))
    await poll(() => sockets() === 0, 'the end of all sockets')
    await poll(async () => (await clients()) <= before - NODES, 'the end of the connections')
  }))

/** How much a server has written. */
const usedOn = async ({ port }: Server): Promise<string> => {
  const info: string = await sendOnce(port, 'INFO', 'replication')
  return /^(?:slave|master)_repl_offset:(\d+)/m.exec(info)![1]!
}

/** How often a server has run the script. */
async function callsOf({ port }: Server): Promise<number> {
  const info: string = await sendOnce(port, 'INFO', 'commandstats')
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(info)?.[1] ?? 0)
}

test.run()
