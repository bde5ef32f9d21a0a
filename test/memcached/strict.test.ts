// run: also-full
// `strict: true` on a real Memcached: never more than the limit, by any number of connections, and whatever fails.
import * as assert from 'uvu/assert'
import { poll } from '../redis/poll.js'
import type { Server } from '../redis/process.js'
import { startProxy, type TcpProxy } from '../redis/proxy.js'
import { startMemcached } from '../redis/servers.js'
import { memcachedTest as test } from '../redis/skip.js'
import { sized } from '../size.js'
import { clientOf, end, Limiters, START_MS } from './limiters.js'

const ALGORITHMS = [
  'sliding-window',
  'sliding-log',
  'sliding-counter',
  'fixed-window',
  'token-bucket',
] as const

let server: Server
let proxy: TcpProxy
let limiters: Limiters
test.before(async () => {
  server = await startMemcached()
  proxy = await startProxy(server.port)
  limiters = new Limiters(server.port)
})
test.after(async () => {
  await limiters?.close()
  proxy?.close()
  if (server) await end(server)
})

for (const algorithm of sized<readonly (typeof ALGORITHMS)[number][]>({
  quick: ['token-bucket'],
  full: ALGORITHMS,
}))
  test(`64 connections at once never admit more: ${algorithm}`, async () => {
    limiters.nowMs = START_MS
    const own = { prefix: `64 ${algorithm}`, limit: 80, window: '1d', algorithm, strict: true } as const
    const all = Array.from({ length: 64 }, () => limiters.timed({ ...own, clockSkew: 0 }))
    await Promise.all(all.map((limiter) => limiter.ready()))
    const decided = await Promise.all(all.flatMap((limiter) => [1, 2, 3].map(() => limiter.check('key'))))
    const admitted = decided.filter(({ allowed }) => allowed).length
    const stats = await Promise.all(all.map((limiter) => limiter.stats()))
    const contended = stats.reduce((sum, each) => sum + each.contended, 0)
    assert.ok(admitted <= 80 && admitted + contended >= 80, `${admitted}, ${contended} contended`)
    assert.is(await all[0]!.usage('key'), admitted)
    assert.ok(
      stats.some(({ retries }) => retries > 0),
      'some have met',
    )
  })

const MINUTES = { limit: 1_000, window: '5m', strict: true, clockSkew: 0 } as const

test('a request that others never let finish is refused, whatever onOutage says, charges nothing, and is counted', async () => {
  const own = { ...MINUTES, prefix: 'contended' } as const
  const slow = limiters.make({ ...own, client: clientOf(proxy.port), onOutage: 'open' })
  const rival = limiters.make(own)
  await Promise.all([slow.ready(), rival.ready()])
  // Between each read and its swap the rival changes the key.
  proxy.beforeRequests(async () => rival.refund(await rival.check('key')))
  const { allowed, source, retryAfterMs } = await slow.check('key', 7)
  const penalty = await slow.penalize('key', 7).catch((reason: unknown) => reason)
  proxy.restore()
  assert.equal([allowed, source, retryAfterMs], [false, 'memcached', 10])
  const { code, mayBeCharged } = penalty as { code: string; mayBeCharged: boolean }
  assert.equal([code, mayBeCharged], ['ERR_MILLRACE_OUTAGE', false])
  const { contended, retries } = await slow.stats()
  assert.is(contended, 2)
  assert.ok(retries >= 128)
  assert.is(await rival.usage('key'), 0)
  assert.ok((await slow.check('key')).allowed)
})

test('connections cut again and again: an unknown outcome counts at most once, and what was admitted always', async () => {
  const limiter = limiters.make({ ...MINUTES, prefix: 'cut', client: clientOf(proxy.port), deadline: '2s' })
  await limiter.ready()
  let known = 0
  let unknown = 0
  for (let round = 0; round < 10; round++) {
    const calls = Array.from({ length: 10 }, (_, i) => limiter.check(`key ${i}`))
    if (round % 2 === 0) proxy.cutReplies(1)
    else proxy.cutRequests(1)
    for (const { source } of await Promise.all(calls)) source === 'memcached' ? known++ : unknown++
    await poll(async () => (await limiter.peek('other')).source === 'memcached', 'the recovery')
  }
  let used = 0
  for (let i = 0; i < 10; i++) used += await limiter.usage(`key ${i}`)
  assert.ok(unknown > 0, 'some were cut')
  assert.ok(used >= known && used <= known + unknown, `${known} <= ${used} <= ${known + unknown}`)
})

test('a server that stands still: a refusal by outage, and a recovery', async () => {
  const own = await startMemcached()
  const client = clientOf(own.port)
  const limiter = limiters.make({ ...MINUTES, prefix: 'still', client, deadline: '250ms' })
  try {
    await limiter.ready()
    await limiter.check('key')
    await own.pause()
    for (let i = 0; i < 5; i++) assert.is((await limiter.check('key')).source, 'outage')
    const decided = await Promise.all(Array.from({ length: 50 }, () => limiter.check('key')))
    assert.ok(decided.every(({ source, allowed }) => source === 'outage' && !allowed))
    own.resume()
    await poll(async () => (await limiter.peek('key')).source === 'memcached', 'the recovery')
    // Each of the five had sent its read only, and writes nothing after its deadline.
    assert.is(await limiter.usage('key'), 1)
  } finally {
    own.resume()
    await limiter.close()
    await end(own)
  }
})

test('a value that Memcached has forgotten gets back what this process has charged', async () => {
  const limiter = limiters.make({ ...MINUTES, prefix: 'forgotten' })
  await limiter.check('key', 6)
  await limiters.tell('flush_all')
  assert.is((await limiter.check('key')).remaining, 999)
  await poll(async () => (await limiter.usage('key')) === 7, 'the charges')
  assert.is((await limiter.stats()).restored, 1)
})

test('a clock that is ahead by clockSkew admits nothing early, and one that is behind counts no shorter', async () => {
  const own = { prefix: 'skew', limit: 5, window: '1s', strict: true } as const
  for (const algorithm of ['sliding-log', 'sliding-window'] as const) {
    const granularity = algorithm === 'sliding-window' ? { granularity: 1 } : {}
    const options = { ...own, ...granularity, algorithm, prefix: `skew ${algorithm}` } as const
    let nowMs = START_MS
    const behind = limiters.make({ ...options, testTime: () => nowMs })
    const ahead = limiters.make({ ...options, testTime: () => nowMs + 100 })
    assert.ok((await behind.check('key', 5)).allowed)
    nowMs += 999
    const early = await ahead.check('key')
    assert.equal([early.allowed, early.retryAfterMs > 0], [false, true], algorithm)
    nowMs += early.retryAfterMs
    assert.ok((await ahead.check('key', 5)).allowed)
    // Those were charged at the time of the clock that is ahead.
    nowMs += 1_099
    assert.not((await behind.check('key')).allowed)
    nowMs += 102
    assert.ok((await behind.check('key')).allowed)
  }
})

test('a value of something else is an error by name, and so is one of other rules', async () => {
  const limiter = limiters.make({ ...MINUTES, prefix: 'foreign' })
  const other = limiters.make({ ...MINUTES, prefix: 'foreign', window: '6m' })
  await limiter.check('key')
  const codes = async (key: string) => {
    const error = await other.check(key).catch((reason: unknown) => reason)
    return (error as { code: string }).code
  }
  assert.is(await codes('key'), 'ERR_MILLRACE_MEMCACHED_VALUE')
  await limiters.tell('set mr:1:foreign:{text}: 0 0 5\r\nhello')
  assert.is(await codes('text'), 'ERR_MILLRACE_MEMCACHED_VALUE')
})

test('what strict: true can not have is refused by name', async () => {
  for (const [options, option] of [
    [{ strict: 'yes' }, 'strict'],
    [{ strict: true, edge: 'smooth', algorithm: 'sliding-window' }, 'edge'],
    [{ strict: true, clockSkew: '2m' }, 'clockSkew'],
    [{ clockSkew: 0 }, 'clockSkew'],
  ] as const) {
    try {
      limiters.make({ limit: 1, window: '1m', ...(options as object) })
      assert.unreachable(option)
    } catch (error) {
      assert.is((error as { option: string }).option, option)
    }
  }
  const limiter = limiters.make({ ...MINUTES, prefix: 'all' })
  const error = await limiter.clearAll().catch((reason: unknown) => reason)
  assert.is((error as { option: string }).option, 'clearAll')
})

test.run()
