// What limiters on a real Memcached admit, and what they leave there.
import * as assert from 'uvu/assert'
import { blockName, CounterNames, counterName } from '#millrace/memcached/counter-names.js'
import { poll } from '../redis/poll.js'
import type { Server } from '../redis/process.js'
import { startMemcached } from '../redis/servers.js'
import { memcachedTest as test } from '../redis/skip.js'
import { end, Limiters, START_MS } from './limiters.js'

let server: Server
let limiters: Limiters
test.before(async () => {
  server = await startMemcached()
  limiters = new Limiters(server.port)
})
test.after(async () => {
  await limiters?.close()
  if (server) await end(server)
})
const nextMs = (ms: number) => {
  limiters.nowMs = START_MS + ms
}

/** The counter of a window, which is there. */
async function counted(prefix: string, key: string, windowMs: number, index: number, rule = 'default') {
  return Number(
    await limiters.value(counterName(new CounterNames(prefix, [rule]).of(key)[0]!, windowMs, index)),
  )
}

test('64 connections at once admit the limit, and take back the rest', async () => {
  const [prefix, windowMs] = ['at once', 86_400_000] as const
  const rule = { prefix, limit: 80, window: windowMs } as const
  nextMs(0)
  const all = Array.from({ length: 64 }, () => limiters.timed(rule))
  await Promise.all(all.map((limiter) => limiter.ready()))
  const decided = await Promise.all(all.flatMap((limiter) => [1, 2, 3, 4, 5].map(() => limiter.check('key'))))
  assert.is(decided.filter(({ allowed }) => allowed).length, 80, 'of 320')
  const index = START_MS / windowMs
  await poll(async () => (await counted(prefix, 'key', windowMs, index)) === 80, 'what was taken back')
})

test('64 connections at once never admit more, whatever they cost', async () => {
  const rules = [
    { name: 'day', limit: 300, window: '1d' },
    { name: 'hour', limit: 200, window: '1h' },
  ] as const
  nextMs(0)
  const all = Array.from({ length: 64 }, () => limiters.timed({ prefix: 'costs', rules }))
  await Promise.all(all.map((limiter) => limiter.ready()))
  const asked = all.flatMap((limiter) =>
    [7, 1, 13, 2].map((cost) => [limiter.check('key', cost), cost] as const),
  )
  let admitted = 0
  for (const [decision, cost] of asked) if ((await decision).allowed) admitted += cost
  assert.ok(admitted <= 200, `${admitted}`)
  const { remaining } = await all[0]!.peek('key')
  await poll(async () => (await all[0]!.usage('key', undefined, { rule: 'day' })) === admitted, 'take-backs')
  assert.ok(remaining <= 200 - admitted)
  // Where each charge meets those of all others, all may be refused. What they take back, the next one has.
  assert.ok((await all[0]!.check('key', 200 - admitted)).allowed)
})

test('the window before counts by the part of it that is still covered', async () => {
  nextMs(0)
  const limiter = limiters.timed({ limit: 100, window: '1m' })
  nextMs(59_999)
  assert.is((await limiter.check('key', 100)).remaining, 0)
  nextMs(60_000)
  const { allowed, retryAfterMs, resetMs } = await limiter.check('key')
  assert.equal([allowed, retryAfterMs, resetMs], [false, 600, 60_000])
  nextMs(60_599)
  assert.not((await limiter.check('key')).allowed, 'a millisecond before')
  nextMs(60_600)
  assert.ok((await limiter.check('key')).allowed)
  // 100 * 0.5 + 1 are used
  nextMs(90_000)
  assert.is((await limiter.peek('key')).remaining, 49)
  assert.is((await limiter.check('key', 50)).allowed, false)
  assert.is((await limiter.check('key', 49)).remaining, 0)
  nextMs(119_999)
  assert.is(await limiter.usage('key'), 51)
  nextMs(180_000)
  assert.is(await limiter.usage('key'), 0)
})

test('a burst at the end of a window lets nearly twice the limit through', async () => {
  const limiter = limiters.timed({ limit: 100, window: '1m' })
  nextMs(59_999)
  let admitted = 0
  for (let ms = 59_999; ms <= 119_999; ms += 600) {
    nextMs(ms)
    const { remaining } = await limiter.peek('key')
    if (remaining > 0 && (await limiter.check('key', remaining)).allowed) admitted += remaining
  }
  assert.is(admitted, 199, 'in a window and a millisecond')
})

test('10,000 in 15 minutes', async () => {
  const limiter = limiters.timed({ limit: 10_000, window: '15m' })
  nextMs(0)
  const decided = await limiter.checkMany(Array(101).fill('key'), 100)
  assert.is(decided.allowed.filter(Boolean).length, 100)
  const { allowed, retryAfterMs } = await limiter.check('key')
  assert.equal([allowed, retryAfterMs], [false, 900_000 + 90])
  nextMs(900_089)
  assert.not((await limiter.check('key')).allowed)
  nextMs(900_090)
  assert.ok((await limiter.check('key')).allowed)
})

test('10 a second with 3,000 in 10 minutes', async () => {
  const prefix = 'both'
  const rules = [
    { name: 'second', limit: 10, window: '1s' },
    { name: 'ten minutes', limit: 3_000, window: '10m' },
  ] as const
  const limiter = limiters.timed({ prefix, rules })
  let admitted = 0
  let refusedBy = ''
  for (let second = 0; second < 310; second++) {
    nextMs(2_000 * second) // every other second, so that the second before has nothing
    if (second >= 300) break
    const { allowed } = await limiter.checkMany(Array(11).fill('key'))
    admitted += allowed.filter(Boolean).length
    if (second === 0) refusedBy = (await limiter.check('key')).rule
  }
  assert.equal([admitted, refusedBy], [3_000, 'second'])
  const { allowed, rule, rules: parts } = await limiter.check('key')
  assert.equal([allowed, rule], [false, 'ten minutes'])
  assert.equal(
    parts.map((part) => part.allowed),
    [true, false],
  )
  const index = Math.floor(limiters.nowMs / 1_000)
  await poll(async () => (await counted(prefix, 'key', 1_000, index, 'second')) === 0, 'all or nothing')
})

test('a refusal, a peek and a cost above the limit leave nothing', async () => {
  const prefix = 'nothing'
  nextMs(0)
  const limiter = limiters.timed({ prefix, limit: 5, window: '1d' })
  const index = START_MS / 86_400_000
  assert.is((await limiter.peek('key')).remaining, 5)
  assert.is((await limiter.check('key', 6)).retryAfterMs, Number.POSITIVE_INFINITY)
  assert.is(
    await limiters.value(counterName(new CounterNames(prefix, ['default']).of('key')[0]!, 86_400_000, index)),
    undefined,
  )
  await limiter.check('key', 4)
  assert.not((await limiter.check('key', 2)).allowed)
  await poll(async () => (await counted(prefix, 'key', 86_400_000, index)) === 4, 'what was taken back')
  assert.ok((await limiter.check('key', 1)).allowed)
})

test('refunds, penalties, reservations', async () => {
  nextMs(0)
  const limiter = limiters.timed({ limit: 10, window: '1m' })
  const decision = await limiter.check('key', 4)
  assert.is(await limiter.refund(decision), 4)
  assert.is(await limiter.refund(decision), 0)
  const late = await limiter.check('key', 4)
  nextMs(90_000)
  assert.is(await limiter.usage('key'), 2)
  assert.is(await limiter.refund(late), 4, 'a charge in the window before')
  assert.is(await limiter.usage('key'), 0)
  await limiter.penalize('key', 12)
  assert.is(await limiter.usage('key'), 12)
  assert.is(await limiter.refund('key', 5), 5)
  assert.is(await limiter.refund('key', 20), 7)
  const reservation = await limiter.reserve('key', 6)
  assert.is(await reservation.commit(2), -4)
  assert.is(await limiter.usage('key'), 2)
  const other = await limiter.reserve('key', 1)
  assert.is(await other.commit(3), 2)
  assert.is(await limiter.usage('key'), 5)
  const old = await limiter.check('key')
  const gone = await limiter.check('key')
  nextMs(179_999)
  assert.is(await limiter.refund(old), 1)
  nextMs(180_000)
  assert.is(await limiter.refund(gone), 0)
})

test('a block ends by itself, by unblock, or by clear', async () => {
  const prefix = 'blocks'
  nextMs(0)
  const limiter = limiters.timed({ prefix, limit: 10, window: '1m' })
  await limiter.check('key', 3)
  await limiter.block('key', '90s')
  const { allowed, remaining, retryAfterMs, resetMs } = await limiter.check('key')
  assert.equal([allowed, remaining, retryAfterMs, resetMs], [false, 0, 90_000, 120_000])
  nextMs(89_999)
  assert.is((await limiter.check('key')).retryAfterMs, 1)
  nextMs(90_000)
  assert.ok((await limiter.check('key')).allowed)
  assert.is(await limiter.unblock('key'), false)
  await limiter.block('key', Number.POSITIVE_INFINITY)
  assert.is((await limiter.check('key')).retryAfterMs, Number.POSITIVE_INFINITY)
  const ttl = await limiters.tell(`mg ${blockName(new CounterNames(prefix, ['default']).of('key')[0]!)} t`)
  assert.is(ttl, 'HD t-1')
  assert.is(await limiter.unblock('key'), true)
  assert.ok((await limiter.check('key')).allowed)
  await limiter.block('key', '1m')
  await limiter.clear('key')
  assert.is((await limiter.check('key')).remaining, 9)
})

test('counters expire when they are not needed any more, also after more than 30 days', async () => {
  for (const [window, seconds] of [
    ['1s', 2],
    ['15m', 1_800],
    ['29d', 58 * 86_400],
    ['366d', 732 * 86_400],
  ] as const) {
    const prefix = `expiry ${window}`
    const limiter = limiters.make({ prefix, limit: 5, window })
    await limiter.check('key')
    const { windowMs } = limiter.rule
    const index = Math.floor(Date.now() / windowMs)
    const neededS = ((index + 2) * windowMs - Date.now()) / 1_000
    const name = counterName(new CounterNames(prefix, ['default']).of('key')[0]!, windowMs, index)
    const reply = String(await limiters.tell(`mg ${name} t`))
    const ttl = Number(/^HD t(\d+)$/.exec(reply)?.[1])
    assert.ok(
      ttl >= neededS && ttl <= neededS + 5 && ttl <= seconds + 5,
      `${window}: ${reply}, needed ${neededS}`,
    )
    assert.is((await limiter.check('key')).remaining, 3)
  }
})

test('a server that forgets its counters admits anew', async () => {
  nextMs(0)
  const limiter = limiters.timed({ limit: 5, window: '1m' })
  assert.is((await limiter.check('key', 5)).remaining, 0)
  assert.is(await limiters.tell('flush_all'), 'OK')
  assert.is((await limiter.check('key', 5)).remaining, 0)
  assert.is((await limiter.check('key')).source, 'memcached')
})

test('requests of one key in checkMany are decided in their order', async () => {
  nextMs(0)
  const limiter = limiters.timed({ limit: 5, window: '1m' })
  const costs = [4, 4, 1, 0, 1, 6]
  const { allowed, remaining } = await limiter.checkMany(Array(6).fill('key'), costs, { remaining: true })
  assert.equal([...allowed], [1, 0, 1, 1, 0, 0])
  assert.equal([...remaining!], [1, 1, 0, 0, 0, 0])
  await poll(async () => (await limiter.usage('key')) === 5, 'what was taken back')
})

test('shadow rules decide nothing, and refusals count if a rule says so', async () => {
  nextMs(0)
  const shadow = limiters.timed({ limit: 2, window: '1m', shadow: true })
  assert.is((await shadow.check('key', 2)).shadow?.allowed, true)
  const { allowed, shadow: verdict } = await shadow.check('key')
  assert.equal([allowed, verdict?.allowed, verdict?.retryAfterMs], [true, false, 90_000])
  assert.is((await shadow.check('key', 5)).allowed, true)
  const counting = limiters.timed({ limit: 2, window: '1m', countRefused: true })
  await counting.check('key', 2)
  assert.not((await counting.check('key', 2)).allowed)
  assert.is(await counting.usage('key'), 4)
  assert.not((await counting.check('key', 3)).allowed)
  assert.is(await counting.usage('key'), 4)
})

test('remembered refusals ask the server no more', async () => {
  const [prefix, windowMs] = ['remembered', 86_400_000] as const
  nextMs(0)
  const limiter = limiters.timed({ prefix, limit: 1, window: windowMs, rememberRefusals: true })
  await limiter.check('key')
  assert.not((await limiter.check('key')).allowed)
  const before = Number((await limiters.stats()).cmd_get)
  for (let i = 0; i < 5; i++) assert.is((await limiter.check('key')).source, 'memcached')
  assert.is(Number((await limiters.stats()).cmd_get), before)
  await limiter.clear('key')
  assert.ok((await limiter.check('key')).allowed)
})

test('handles, blocks and limits of a call, in units', async () => {
  nextMs(0)
  const limiter = limiters.timed({ limit: '640KB', window: '1m', unit: '64KB' })
  const handle = limiter.handle('key')
  assert.is((await limiter.check(handle, 1)).remaining, 576_000)
  assert.not((await limiter.check(handle, 1, { limit: '64KB' })).allowed)
  await limiter.block('key', '1m')
  assert.not((await limiter.check(handle, 0)).allowed)
  assert.ok(await limiter.unblock(handle))
  assert.is(await limiter.usage(handle), 64_000)
  assert.is(await limiter.refund(handle, 64_000), 64_000)
  assert.is(await limiter.usage('key'), 0)
})

test('where clocks differ, the one behind does not see what the one ahead counts in the next window', async () => {
  const rule = { prefix: 'clocks', limit: 10, window: '1m' } as const
  nextMs(59_950)
  const behind = limiters.timed(rule)
  const ahead = limiters.make({ ...rule, testTime: () => limiters.nowMs + 100 })
  await behind.check('key', 4)
  assert.is((await ahead.check('key', 6)).remaining, 0)
  assert.is((await behind.check('key', 6)).remaining, 0, '16 of 10')
  nextMs(60_000)
  assert.is(await behind.usage('key'), 16)
})

test.run()
