// run: first, full, also-long
import { attachLimiter, createLimiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { monotonicClock } from '#millrace/core/clock.js'
import type { InlineDecision } from '#millrace/core/inline-decision.js'
import { sized } from '../size.js'
import { run, Tally, type Task } from './thread-group.js'

/** The share of the full number of operations that each thread does. */
const scaled = (full: number) => sized({ quick: full / 20, full: full / 5, long: full })
const CREWS = sized({ quick: [2], full: [4] })

const tasksFor = (threads: number, task: Task): Task[] => Array.from({ length: threads }, () => task)

for (const threads of CREWS) {
  test(`${threads} threads on one key: exactly the limit is admitted`, async () => {
    const limit = sized({ quick: 12_001, full: 30_001 })
    const rounds = sized({ quick: 16_000, full: 40_000 })
    for (const cost of [1, 3]) {
      const limiter = createLimiter({ limit, window: '1m', maxKeys: 100, clock: manualClock(1e6) })
      const tally = new Tally(1, 1)
      await run(limiter, tasksFor(threads, { name: 'admit', keys: 1, rounds, cost }), tally)
      assert.is(tally.admitted[0], Math.floor(limit / cost) * cost)
      const { allowed, denied, keys } = limiter.stats()
      assert.equal([keys, allowed + denied], [1, threads * rounds])
    }
  })

  test(`${threads} threads on many new keys at once: one cell a key, exactly the limit on each`, async () => {
    const keys = scaled(20_000)
    for (const name of ['admit', 'churn'] as const) {
      const limiter = createLimiter({
        limit: 3,
        window: '1m',
        granularity: '10s',
        maxKeys: keys,
        clock: manualClock(1e6),
      })
      const tally = new Tally(keys, 1)
      await run(limiter, tasksFor(threads, { name, keys, rounds: 8, cost: 1 }), tally)
      const met = tally.admitted.filter((admitted) => admitted > 0).length
      if (name === 'admit') assert.is(met, keys)
      assert.ok(tally.admitted.every((admitted) => admitted <= 3))
      if (name === 'admit') assert.ok(tally.admitted.every((admitted) => admitted === 3))
      const stats = limiter.stats()
      assert.equal([stats.keys, stats.noRoom, stats.evictedLive, stats.lostWays], [met, 0, 0, 0])
    }
  })

  test(`${threads} threads through rollovers of a millisecond: never over in any window`, async () => {
    const limiter = createLimiter({ limit: 50, window: 20, granularity: 1, maxKeys: 100 })
    const firstTick = Math.floor(monotonicClock.now())
    const tally = new Tally(1, 120_000)
    await run(
      limiter,
      tasksFor(threads, { name: 'roll', keys: 1, rounds: scaled(1_000_000), cost: 3 }),
      tally,
      firstTick,
    )
    assert.ok(tally.admitted[0]! > 200, 'windows passed')
    assert.is(
      tally.byTick.reduce((sum, count) => sum + count),
      tally.admitted[0],
      'every admission is in the tally',
    )
    assert.ok(tally.mostIn(21) <= 50, `${tally.mostIn(21)} in 21 ticks`)
    assert.ok(tally.mostIn(21) > 45, 'the limit was reached')
  })

  test(`${threads} threads, and a table too small for their keys: no key has two cells, nothing is lost`, async () => {
    const limiter = createLimiter({ limit: 5, window: 20, granularity: 1, maxKeys: 100 })
    const tally = new Tally(400, 1)
    await run(
      limiter,
      tasksFor(threads, { name: 'churn', keys: 400, rounds: sized({ quick: 60, full: 300 }), cost: 1 }),
      tally,
    )
    const stats = limiter.stats()
    assert.is(stats.lostWays, 0)
    assert.ok(stats.evicted > 1_000)
    assert.is(
      stats.allowed,
      tally.admitted.reduce((sum, count) => sum + count),
    )
  })

  test(`${threads} threads give back, penalize, block, unblock and update while they decide: never over`, async () => {
    const limiter = createLimiter({ limit: 50, window: 20, granularity: 1, maxKeys: 2_000 })
    const firstTick = Math.floor(monotonicClock.now())
    const tally = new Tally(1, 120_000)
    await run(
      limiter,
      tasksFor(threads, { name: 'adjust', keys: 1, rounds: scaled(300_000), cost: 1 }),
      tally,
      firstTick,
    )
    assert.ok(tally.admitted[0]! > 20)
    assert.ok(tally.mostIn(21) <= 50, `${tally.mostIn(21)} in 21 ticks`)
    // A window and a granule after the last change, on a clock that stands still: the whole limit is free,
    // once, however long this thread is descheduled between two decisions.
    limiter.update('default', { limit: 50 })
    const laterMs = monotonicClock.now() + 1_000
    const later = attachLimiter(limiter.share(), { clock: { now: () => laterMs } })
    assert.is(later.peek('key 0').remaining, 50)
    assert.ok(later.check('key 0', 50).allowed)
    assert.not(later.check('key 0').allowed)
  })
}

for (const threads of CREWS) {
  test(`${threads} threads refund by key while they decide: admissions minus refunds stay within the limit`, async () => {
    const limiter = createLimiter({ limit: 20, window: '1m', maxKeys: 100, clock: manualClock(1e6) })
    const tally = new Tally(1, 1)
    await run(
      limiter,
      tasksFor(threads, { name: 'refund', keys: 1, rounds: scaled(200_000), cost: 1 }),
      tally,
    )
    const standing = tally.admitted[0]!
    assert.ok(standing <= 20, `${standing} admitted and not returned`)
    assert.ok(limiter.usage('key 0') >= standing, 'an admission is missing from the counts')
    const counted = limiter.usage('key 0')
    assert.is(limiter.refund('key 0', 1_000), counted)
    assert.is(limiter.peek('key 0').remaining, 20)
  })

  test(`${threads} threads clear, block and penalize while they decide: afterwards the whole limit is free`, async () => {
    const limiter = createLimiter({ limit: 20, window: '1m', maxKeys: 100, clock: manualClock(1e6) })
    await run(
      limiter,
      tasksFor(threads, { name: 'clear', keys: 1, rounds: scaled(100_000), cost: 1 }),
      new Tally(1, 1),
    )
    limiter.clear('key 0')
    assert.equal([limiter.usage('key 0'), limiter.peek('key 0').remaining], [0, 20])
    for (let i = 0; i < 20; i++) assert.ok(limiter.check('key 0').allowed)
    assert.not(limiter.check('key 0').allowed)
  })
}

for (const threads of CREWS) {
  test(`${threads} threads on several rules: no limit is exceeded in any window, and refusals leave no charge`, async () => {
    const rules = [
      { name: 'fast', limit: 20, window: 20, granularity: 1 },
      { name: 'slow', limit: 60, window: 100, granularity: 1 },
    ]
    const limiter = createLimiter({ rules, maxKeys: 100 })
    const firstTick = Math.floor(monotonicClock.now())
    const tally = new Tally(1, 120_000, rules.length)
    await run(
      limiter,
      tasksFor(threads, { name: 'roll', keys: 1, rounds: scaled(600_000), cost: 3 }),
      tally,
      firstTick,
    )
    assert.ok(tally.admitted[0]! > 100, 'windows passed')
    for (const [i, { name, limit, window }] of rules.entries()) {
      const most = tally.mostIn(window + 1, i)
      assert.ok(most <= limit, `${name}: ${most} in a window`)
      assert.ok(most > 0.8 * limit, `${name}: the limit was reached`)
    }
    const { allowed, denied, lostWays } = limiter.stats()
    assert.ok(allowed + denied >= threads * scaled(600_000))
    assert.is(lostWays, 0)
    const laterMs = monotonicClock.now() + 1_000
    const later = attachLimiter(limiter.share(), { clock: { now: () => laterMs } })
    assert.equal(
      later.peek('key 0').rules.map(({ remaining }) => remaining),
      [20, 60],
    )
  })

  test(`${threads} threads on several rules: what they refuse each other, a later request can still use`, async () => {
    const rules = [
      { name: 'first', limit: 20_000, window: '1m' },
      { name: 'second', limit: 9_000, window: '1h' },
      { name: 'third', limit: 12_000, window: '1d' },
    ]
    const limiter = createLimiter({ rules, maxKeys: 100, clock: manualClock(1e6) })
    const tally = new Tally(1, 1, rules.length)
    await run(limiter, tasksFor(threads, { name: 'admit', keys: 1, rounds: 8_000, cost: 1 }), tally)
    assert.ok(tally.admitted[0]! <= 9_000, `${tally.admitted[0]} admitted`)
    let admitted = tally.admitted[0]!
    while (limiter.check('key 0').allowed) admitted++
    assert.is(admitted, 9_000)
    for (const { name } of rules) assert.is(limiter.usage('key 0', undefined, { rule: name }), 9_000)
    assert.is(limiter.stats().allowed, 9_000)
  })
}

test('a change by one thread is visible to the others', async () => {
  const clock = manualClock(1e6)
  const limiter = createLimiter({ limit: 10, window: '1m', maxKeys: 100, clock })
  const tally = new Tally(1, 1)
  await run(limiter, tasksFor(2, { name: 'admit', keys: 1, rounds: 10, cost: 1 }), tally)
  assert.not(limiter.check('key 0').allowed)
  limiter.update('default', { limit: 12 })
  await run(limiter, tasksFor(2, { name: 'admit', keys: 1, rounds: 10, cost: 1 }), tally)
  assert.is(tally.admitted[0], 12)
  clock.advance(61_000)
  await run(limiter, tasksFor(2, { name: 'admit', keys: 1, rounds: 10, cost: 1 }), tally)
  assert.is(tally.admitted[0], 24)
  limiter.block('key 0', Number.POSITIVE_INFINITY)
  clock.advance(3_600_000)
  await run(limiter, tasksFor(2, { name: 'admit', keys: 1, rounds: 10, cost: 1 }), tally)
  assert.is(tally.admitted[0], 24)
  assert.is((limiter.peek('key 0') as InlineDecision).retryAfterMs, Number.POSITIVE_INFINITY)
})

test('the default clock agrees between threads', async () => {
  const { Worker } = await import('node:worker_threads')
  const code = `
    import('${new URL('../../lib/core/clock.js', import.meta.url)}').then(({ monotonicClock }) => {
      const { parentPort } = require('node:worker_threads')
      parentPort.on('message', () => parentPort.postMessage(monotonicClock.now()))
    })`
  const worker = new Worker(code, { eval: true })
  for (let i = 0; i < 20; i++) {
    const before = monotonicClock.now()
    worker.postMessage('now')
    const there = await new Promise<number>((resolve) => worker.once('message', resolve))
    const after = monotonicClock.now()
    assert.ok(before <= there && there <= after, `${before} ${there} ${after}`)
  }
  await worker.terminate()
})

test.run()
