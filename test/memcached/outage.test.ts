// run: also-full
// What a limiter on Memcached does while the server does not answer, and afterwards.
import {
  createMemcachedLimiter,
  type MemcachedLimiter,
  type MemcachedLimiterOptions,
} from 'millrace/memcached'
import * as assert from 'uvu/assert'
import { CounterNames, counterName } from '#millrace/memcached/counter-names.js'
import { poll } from '../redis/poll.js'
import type { Server } from '../redis/process.js'
import { startProxy, type TcpProxy } from '../redis/proxy.js'
import { startMemcached } from '../redis/servers.js'
import { memcachedTest as test } from '../redis/skip.js'
import { size, sized } from '../size.js'
import { clientOf, end, Limiters, START_MS } from './limiters.js'

interface Subject {
  readonly limiter: MemcachedLimiter
  readonly server: Server
  readonly proxy: TcpProxy
  /** The units in the counter of `key`. */
  units(): Promise<number>
}

const WINDOW_MS = 3_600_000
/** The deadline is long enough for a busy machine. */
const RULE = { prefix: 'test', limit: 4, window: '1h', deadline: '250ms' } as const

/** Tests with a server behind a proxy, and a limiter of 4 an hour. */
function outageTest(
  name: string,
  options: Partial<MemcachedLimiterOptions>,
  act: (subject: Subject) => Promise<void>,
): void {
  test(name, async () => {
    const server = await startMemcached()
    const proxy = await startProxy(server.port)
    const direct = new Limiters(server.port)
    const rule = { ...RULE, window: WINDOW_MS, testTime: () => START_MS }
    const limiter = createMemcachedLimiter({ client: clientOf(proxy.port), ...rule, ...options })
    const counter = counterName(
      new CounterNames('test', ['default']).of('key')[0]!,
      WINDOW_MS,
      START_MS / WINDOW_MS,
    )
    const units = async () => Number((await direct.value(counter)) ?? 0)
    try {
      await limiter.ready()
      await act({ limiter, server, proxy, units })
    } finally {
      await limiter.close()
      await poll(() => proxy.open === 0, 'the end of the connection')
      await direct.close()
      proxy.close()
      await end(server)
    }
  })
}

/** Peeks until Memcached decides again. */
const recovered = (limiter: MemcachedLimiter) =>
  poll(async () => (await limiter.peek('any')).source === 'memcached', 'a decision of Memcached')

test('a refused connection is the reason, until there is one', async () => {
  const server = await startMemcached()
  await server.kill()
  const limiter = createMemcachedLimiter({ client: clientOf(server.port), ...RULE })
  const lastFailure = async () => (await limiter.check('key')) && (await limiter.stats()).lastFailure
  try {
    const refused = `connect ECONNREFUSED 127.0.0.1:${server.port}`
    await poll(async () => (await lastFailure()) === refused, refused)
    await server.restart()
    await limiter.ready()
    await recovered(limiter)
    await server.pause()
    await poll(async () => /deadline/.test((await lastFailure())!), 'a deadline')
  } finally {
    server.resume()
    await limiter.close()
    await end(server)
  }
})

outageTest(
  'a server that stands still: a refusal by outage, at once after five',
  {},
  async ({ limiter, server, units }) => {
    await limiter.check('key')
    await server.pause()
    for (let i = 0; i < 5; i++) {
      const { allowed, source, retryAfterMs } = await limiter.check('key')
      assert.equal([allowed, source, retryAfterMs], [false, 'outage', 1_000])
    }
    const decided = await Promise.all(Array.from({ length: 100 }, () => limiter.check('key')))
    assert.ok(decided.every(({ source }) => source === 'outage'))
    const batch = await limiter.checkMany(['key', 'other'])
    assert.equal([...batch.allowed, batch.source(0), batch.source(1)], [0, 0, 'outage', 'outage'])
    const thrown = await limiter.checkOrThrow('key').catch((reason) => reason)
    assert.is(thrown.message, 'not decided: the store does not answer; retry after 1 s')
    assert.is(thrown.decision.source, 'outage')
    const { withoutStore, outages, lastFailure } = await limiter.stats()
    assert.equal([withoutStore.closed, outages], [108, 108])
    assert.match(lastFailure!, /deadline/)
    for (const act of [
      () => limiter.clear('key'),
      () => limiter.refund('key', 1),
      () => limiter.penalize('key', 1),
      () => limiter.block('key', '1s'),
      () => limiter.usage('key'),
    ]) {
      const error = await act().catch((reason) => reason)
      assert.is(error.code, 'ERR_MILLRACE_OUTAGE')
    }
    server.resume()
    await recovered(limiter)
    await poll(async () => (await units()) === 1, 'the charges of nobody, taken back')
  },
)

outageTest(
  'a server that is killed: open allows all, and counts nothing',
  { onOutage: 'open' },
  async (subject) => {
    const { limiter, server } = subject
    await server.kill()
    for (let i = 0; i < 20; i++) {
      const { allowed, source, remaining } = await limiter.check('key')
      assert.equal([allowed, source, remaining], [true, 'outage', 4])
    }
    await server.restart()
    await recovered(limiter)
    assert.is(await limiter.usage('key'), 0)
  },
)

outageTest(
  'local: the share of the limit, less what Memcached had admitted, and a report afterwards',
  { limit: 8, onOutage: 'local', nodes: 2 },
  async ({ limiter, server }) => {
    await limiter.check('key', 2)
    await server.kill()
    const decided = []
    for (let i = 0; i < 6; i++) decided.push(await limiter.check('key'))
    assert.ok(decided.every(({ source }) => source === 'local'))
    assert.equal(
      decided.map(({ allowed }) => allowed),
      [true, true, false, false, false, false],
    )
    assert.is((await limiter.stats()).local, 6)
    await server.restart() // empty: it has lost the first two
    await recovered(limiter)
    await poll(async () => (await limiter.usage('key')) === 2, 'the report')
  },
)

outageTest(
  'a lost reply leaves the charge, and no command is sent again',
  {},
  async ({ limiter, proxy, units }) => {
    await limiter.check('key')
    proxy.cutReplies()
    assert.is((await limiter.check('key')).source, 'outage')
    await recovered(limiter)
    assert.is(await units(), 2)
    proxy.cutReplies()
    const error = await limiter.penalize('key', 1).catch((reason) => reason)
    assert.equal([error.code, error.mayBeCharged], ['ERR_MILLRACE_OUTAGE', true])
    await recovered(limiter)
    assert.is(await units(), 3)
  },
)

outageTest(
  'whatever is cut under load, a request counts once or, if it had no answer, at most once',
  { limit: 1_000_000 },
  async ({ limiter, proxy, units }) => {
    let admitted = 0
    let unanswered = 0
    for (let round = 0; round < sized({ quick: 8, full: 150 }); round++) {
      const calls = Array.from({ length: 20 }, () => limiter.check('key'))
      if (round % 3 === 0) proxy.cutReplies()
      else if (round % 3 === 1) proxy.cutRequests()
      else setImmediate(() => proxy.cutAll())
      for (const { source } of await Promise.all(calls)) source === 'memcached' ? admitted++ : unanswered++
      await recovered(limiter)
    }
    const counted = await units()
    assert.ok(unanswered > 0 && admitted + unanswered >= counted && counted >= admitted)
  },
)

outageTest('a lost request charges nothing', {}, async ({ limiter, proxy, units }) => {
  await limiter.check('key')
  proxy.cutRequests()
  assert.is((await limiter.check('key')).source, 'outage')
  await recovered(limiter)
  assert.is(await units(), 1)
  assert.ok((await limiter.check('key', 3)).allowed)
})

outageTest(
  'a reply after the deadline is void, and its charge is taken back',
  {},
  async ({ limiter, proxy, units }) => {
    await limiter.check('key')
    proxy.hold()
    assert.is((await limiter.check('key')).source, 'outage')
    assert.is((await limiter.check('other')).source, 'outage')
    await poll(async () => (await units()) === 2, 'the charge')
    proxy.release()
    await poll(async () => (await units()) === 1, 'the take-back')
    await recovered(limiter)
    assert.is(await limiter.usage('other'), 0)
  },
)

outageTest('a server that refuses connections, then accepts them', {}, async ({ limiter, proxy }) => {
  proxy.refuse()
  proxy.cutAll()
  await poll(async () => (await limiter.check('key')).source === 'outage', 'the loss')
  for (let i = 0; i < 20; i++) assert.is((await limiter.check('key')).source, 'outage')
  await proxy.accept()
  await recovered(limiter)
})

outageTest('a network that loses everything: all settle, and it recovers', {}, async ({ limiter, proxy }) => {
  proxy.dropAll()
  const calls = Array.from({ length: 50 }, () => limiter.check('key'))
  for (const { source } of await Promise.all(calls)) assert.is(source, 'outage')
  proxy.restore()
  await recovered(limiter)
})

outageTest('close waits for the calls under way, and they settle', {}, async ({ limiter, server }) => {
  await server.pause()
  const calls = Promise.all([limiter.check('key'), limiter.peek('key')])
  await limiter.close()
  for (const { source } of await calls) assert.is(source, 'outage')
  server.resume()
})

if (size === 'full')
  outageTest(
    'a connection without replies for seconds is given up',
    {},
    async ({ limiter, server, proxy }) => {
      await server.pause()
      await poll(async () => {
        await limiter.check('key')
        return proxy.accepted > 2
      }, 'attempts to connect again')
      server.resume()
      await recovered(limiter)
    },
  )

test('a server that starts later is found', async () => {
  const server = await startMemcached()
  await server.kill()
  const client = clientOf(server.port)
  const limiter = createMemcachedLimiter({ client, ...RULE })
  try {
    assert.is((await limiter.check('key')).source, 'outage')
    await server.restart()
    await limiter.ready()
    assert.is((await limiter.check('key')).source, 'memcached')
  } finally {
    await limiter.close()
    await end(server)
  }
})

test('a name that no server has: all settle, and close ends it', async () => {
  const client = clientOf(1)
  await client.addNode('no-such-host.invalid:11211')
  await client.removeNode(client.nodeIds[0]!)
  const limiter = createMemcachedLimiter({ client, ...RULE })
  const ready = limiter.ready().catch((error) => error.code)
  for (let i = 0; i < 7; i++) assert.is((await limiter.check('key')).source, 'outage')
  await limiter.close()
  assert.is(await ready, 'ERR_MILLRACE_CLOSED')
})

test('with two servers, one that is gone takes its own keys only', async () => {
  const servers = await Promise.all([startMemcached(), startMemcached()])
  const client = clientOf(...servers.map(({ port }) => port))
  const limiter = createMemcachedLimiter({ client, ...RULE })
  try {
    await limiter.ready()
    const keys = Array.from({ length: 40 }, (_, i) => `key ${i}`)
    const sources = async () => Promise.all(keys.map(async (key) => (await limiter.check(key)).source))
    assert.ok((await sources()).every((source) => source === 'memcached'))
    await servers[0]!.kill()
    await poll(async () => (await sources()).includes('outage'), 'the loss')
    const left = await sources()
    assert.ok(left.includes('memcached') && left.includes('outage'), left.join(' '))
    const batch = await limiter.checkMany(keys)
    assert.equal(
      new Set(keys.map((_, i) => batch.source(i))),
      new Set(left),
      'each key of a batch has its own',
    )
    await servers[0]!.restart()
    await poll(async () => !(await sources()).includes('outage'), 'the recovery')
  } finally {
    await limiter.close()
    await end(...servers)
  }
})

test.run()
