// Pending `wait` calls are served in order. Events that wake or reject them are in wait-ends.test.ts.
import { hrtime } from 'node:process'
import { createLimiter, type Decision, type Limiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { limiterWith, resolved, START_MS, settled, turn, until } from './support.js'

const REFILL_MS = 61_000 - (START_MS % 1_000) // a charge at START_MS counts until then

/** Waits until there is one more refusal than `before`: a pending call has tried, and still waits. */
function refusedAfter(limiter: Limiter, before: number): Promise<void> {
  return until(() => limiter.stats().denied > before, 'another try')
}

test('if there is room, wait resolves at once with the decision', async () => {
  const { limiter } = limiterWith()
  const decision = await resolved(limiter.wait('key'))
  assert.equal([decision.allowed, decision.remaining, decision.retryAfterMs], [true, 4, 0])
  assert.is((await resolved(limiter.wait('key', {}))).remaining, 3)
  assert.is((await resolved(limiter.wait(limiter.handle('key'), { cost: 3 }))).remaining, 0)
  assert.is((await resolved(limiter.wait('key', { cost: 0 }))).allowed, true)
  assert.is(limiter.usage('key'), 5)
})

test('otherwise wait resolves as soon as there is room, and not before', async () => {
  const { clock, limiter } = limiterWith()
  limiter.check('key', 5)
  const waiting = limiter.wait('key', { cost: 2 })
  let isServed = false
  void waiting.then(() => (isServed = true))
  for (const ms of [1_000, 58_000, REFILL_MS - 59_000 - 1]) {
    const { denied } = limiter.stats()
    clock.advance(ms)
    await refusedAfter(limiter, denied)
    await turn()
    assert.not(isServed)
  }
  clock.advance(1)
  assert.is((await resolved(waiting)).remaining, 3)
})

test('the decision of a wait can be refunded', async () => {
  const { clock, limiter } = limiterWith()
  limiter.check('key', 5)
  const waiting = limiter.wait('key', { cost: 2 })
  clock.advance(REFILL_MS)
  assert.is(limiter.refund(await resolved(waiting)), 2)
})

test('calls for one key are served in order: small costs do not overtake a large one', async () => {
  const { clock, limiter } = limiterWith()
  limiter.check('key', 2)
  clock.advance(10_000)
  limiter.check('key', 3)
  const served: string[] = []
  const waits = [
    limiter.wait('key', { cost: 5 }).then(() => served.push('large')),
    limiter.wait(limiter.handle('key')).then(() => served.push('small, by handle')),
    limiter.wait('key').then(() => served.push('small')),
  ]
  const { denied } = limiter.stats()
  clock.advance(REFILL_MS - 10_000)
  await refusedAfter(limiter, denied)
  await turn()
  assert.equal([served, limiter.usage('key')], [[], 3], 'two units are free, and kept for the first call')
  clock.advance(10_000)
  await until(() => served.length === 1, 'the large one')
  clock.advance(61_000)
  await resolved(Promise.all(waits))
  assert.equal(served, ['large', 'small, by handle', 'small'])
})

test('many calls for one key are admitted in order, at most the limit in each window', async () => {
  const { clock, limiter } = limiterWith()
  const served: number[] = []
  for (let i = 0; i < 23; i++) void limiter.wait('key').then(() => served.push(i))
  for (const count of [5, 10, 15, 20, 23]) {
    await until(() => served.length === count, `${count} served`)
    await turn()
    assert.is(served.length, count)
    clock.advance(61_000)
  }
  assert.equal(
    served,
    served.map((_, i) => i),
  )
})

test('a pending call does not delay calls for other keys', async () => {
  const { clock, limiter } = limiterWith()
  limiter.check('slow', 5)
  clock.advance(30_000)
  limiter.check('fast', 4)
  const slow = limiter.wait('slow', { cost: 5 })
  assert.is((await resolved(limiter.wait('fast'))).remaining, 0)
  const fast = limiter.wait('fast', { cost: 5 })
  const served: string[] = []
  void slow.then(() => served.push('slow'))
  void fast.then(() => served.push('fast'))
  clock.advance(REFILL_MS - 30_000)
  await resolved(slow)
  await turn()
  assert.equal(served, ['slow'])
  clock.advance(30_000)
  await resolved(fast)
})

test('a pending call reserves nothing: a check in between is decided as usual', async () => {
  const { clock, limiter } = limiterWith()
  limiter.check('key', 5)
  const waiting = limiter.wait('key', { cost: 5 })
  clock.advance(REFILL_MS)
  assert.ok(limiter.check('key').allowed, 'before the waiter had its turn')
  clock.advance(61_000)
  assert.is((await resolved(waiting)).remaining, 0)
})

test('wait works on the real clock, and keeps to the limit in each window', async () => {
  const windowMs = 200
  const limiter = createLimiter({ limit: 2, window: windowMs, granularity: 20, maxKeys: 20 })
  const admitted: Promise<Decision>[] = []
  const at: bigint[] = []
  const started = hrtime.bigint()
  for (let i = 0; i < 6; i++) {
    const waiting = limiter.wait('key')
    void waiting.then(() => at.push(hrtime.bigint()))
    admitted.push(waiting)
  }
  for (const waiting of admitted) assert.ok((await resolved(waiting)).allowed)
  // Six units at two a window: the last was admitted two windows after the first, which was not before
  // `started`.
  assert.ok(Number(at[5]! - started) >= 2 * windowMs * 1e6, `${at.map((one) => one - started)}`)
  await resolved(limiter.close())
})

test('a wait longer than the longest timer uses one timer after another', async () => {
  const realSetTimeout = globalThis.setTimeout
  const timers: { fire: () => void; ms: number }[] = []
  const standIn = (fire: () => void, ms: number) => {
    timers.push({ fire, ms })
    return realSetTimeout(() => {}, 0)
  }
  globalThis.setTimeout = standIn as never
  try {
    let now = START_MS
    const clock = { now: () => now }
    const { limiter } = limiterWith({ limit: 1, window: '60d', granularity: '1d', clock })
    limiter.check('key')
    const waiting = limiter.wait('key')
    let isServed = false
    void waiting.then(() => (isServed = true))
    let waitedMs = 0
    while (!isServed) {
      const tries = timers.length
      await turn()
      assert.is(timers.length, tries, 'one timer for each try')
      const { fire, ms } = timers.at(-1)!
      assert.ok(ms >= 1 && ms <= 2 ** 31 - 1, `a timer of ${ms} ms fires at once`)
      now += ms
      waitedMs += ms
      fire()
      await turn()
    }
    assert.is(waitedMs, 61 * 86_400_000 - START_MS)
    assert.is(timers.length, 3)
    assert.is((await settled(waiting)).status, 'fulfilled')
  } finally {
    globalThis.setTimeout = realSetTimeout
  }
})

test.run()
