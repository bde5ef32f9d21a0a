import { getEventListeners } from 'node:events'
import { getActiveResourcesInfo } from 'node:process'
import { createLimiter, type Limiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertIsError, assertRejects, limiterWith, resolved, settled, turn, until } from './support.js'

async function reasonOf(waiting: Promise<unknown>): Promise<unknown> {
  const outcome = await settled(waiting)
  assert.is(outcome.status, 'rejected')
  return (outcome as PromiseRejectedResult).reason
}

/** A limiter whose key is at its limit, and one who waits for it. */
async function limiterWithWaiter() {
  const { clock, limiter } = limiterWith()
  const used = limiter.check('key', 5)
  const waiting = limiter.wait('key')
  await until(() => limiter.stats().denied > 0, 'the first try')
  await turn()
  return { clock, limiter, used, waiting }
}

const WAKES: Record<string, (limiter: Limiter, used: ReturnType<Limiter['check']>) => void> = {
  'a refund of a decision': (limiter, used) => limiter.refund(used),
  'a refund by key': (limiter) => limiter.refund('key', 1),
  clear: (limiter) => limiter.clear('key'),
  'a raised limit': (limiter) => limiter.update('default', { limit: 6 }),
}
for (const [name, wake] of Object.entries(WAKES)) {
  test(`${name} wakes who waits, without any time passing`, async () => {
    const { limiter, used, waiting } = await limiterWithWaiter()
    wake(limiter, used)
    assert.ok((await resolved(waiting)).allowed)
  })

  test(`${name} wakes who waits by a clock of one’s own, and its timer is gone`, async () => {
    const timers = () => getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const before = timers()
    const { limiter } = limiterWith({ clock: { now: () => 1_000_123 } })
    const used = limiter.check('key', 5)
    const waiting = limiter.wait('key')
    assert.is(timers(), before + 1)
    const outcome = settled(waiting)
    wake(limiter, used)
    await turn()
    const after = timers()
    await limiter.close() // turns away who still waits
    assert.equal([(await outcome).status, after], ['fulfilled', before])
  })
}

test('unblock wakes who waits for the end of a block', async () => {
  const { limiter } = limiterWith()
  limiter.block('key', '1d')
  const waiting = limiter.wait('key')
  await until(() => limiter.stats().denied > 0, 'the first try')
  limiter.unblock('key')
  assert.ok((await resolved(waiting)).allowed)
})

test('the end of a block, and a shorter block in its place, let the waiter in when they are over', async () => {
  const { clock, limiter } = limiterWith()
  limiter.block('key', '1d')
  const waiting = limiter.wait('key')
  limiter.block('key', '10s')
  clock.advance(10_000)
  assert.is((await resolved(waiting)).remaining, 4)
})

test('a shorter block in place of another wakes who waits, also by a clock of one’s own', async () => {
  let now = 1_000_123
  const { limiter } = limiterWith({ clock: { now: () => now } })
  limiter.block('key', '1d')
  const outcome = settled(limiter.wait('key'))
  limiter.block('key', 100)
  now += 200
  await turn()
  await limiter.close() // rejects a call that still waits
  assert.is((await outcome).status, 'fulfilled')
})

test('an abort before is the signal’s own reason, and charges nothing', async () => {
  const { limiter } = limiterWith()
  const reason = new Error('mine')
  assert.is(await reasonOf(limiter.wait('key', { signal: AbortSignal.abort(reason) })), reason)
  const unnamed = (await reasonOf(limiter.wait('key', { signal: AbortSignal.abort() }))) as Error
  assert.is(unnamed.name, 'AbortError')
  assert.is(limiter.usage('key'), 0)
})

test('an abort while waiting is the signal’s own reason, and charges nothing, also later', async () => {
  const { clock, limiter } = limiterWith()
  limiter.check('key', 5)
  const controller = new AbortController()
  const waiting = limiter.wait('key', { signal: controller.signal })
  await until(() => limiter.stats().denied > 0, 'the first try')
  controller.abort('enough')
  assert.is(await reasonOf(waiting), 'enough')
  clock.advance(61_000)
  await turn()
  assert.is(limiter.usage('key'), 0)
  assert.is((await resolved(limiter.wait('key', { cost: 5 }))).remaining, 0, 'the next is served as ever')
})

test('when the first in line is aborted the next gets on at once, and when another is the rest keep their order', async () => {
  const { limiter } = limiterWith()
  limiter.check('key', 3)
  const large = new AbortController()
  const third = new AbortController()
  const served: string[] = []
  const waits = [
    limiter.wait('key', { cost: 5, signal: large.signal }).then(() => served.push('first')),
    limiter.wait('key').then(() => served.push('second')),
    limiter.wait('key', { signal: third.signal }).then(() => served.push('third')),
    limiter.wait('key').then(() => served.push('fourth')),
  ]
  const outcomes = Promise.allSettled(waits)
  await until(() => limiter.stats().denied > 0, 'the first try')
  third.abort()
  await turn()
  assert.equal(served, [])
  large.abort()
  const statuses = (await resolved(outcomes)).map(({ status }) => status)
  assert.equal(statuses, ['rejected', 'fulfilled', 'rejected', 'fulfilled'])
  assert.equal(served, ['second', 'fourth'])
})

test('a signal is let go of when its wait is over, however it ended', async () => {
  const { limiter } = limiterWith()
  const { signal } = new AbortController()
  await resolved(limiter.wait('key', { signal }))
  await assertRejects(() => limiter.wait('key', { cost: 6, signal }), 'ERR_MILLRACE_NEVER_ADMITTED', 'cost')
  limiter.check('key', 4)
  const waited = settled(limiter.wait('key', { cost: 2, signal }))
  assert.is(getEventListeners(signal, 'abort').length, 1)
  await resolved(limiter.close())
  assert.is((await waited).status, 'rejected')
  assert.is(getEventListeners(signal, 'abort').length, 0)
})

test('an abort after it was admitted changes nothing', async () => {
  const { limiter } = limiterWith()
  const controller = new AbortController()
  const decision = await resolved(limiter.wait('key', { signal: controller.signal }))
  controller.abort()
  await turn()
  assert.ok(decision.allowed)
  assert.is(limiter.usage('key'), 1)
})

test('close rejects everybody who waits, on every key', async () => {
  const { limiter } = limiterWith()
  const waits: Promise<unknown>[] = []
  for (const key of ['a', 'b']) {
    limiter.check(key, 5)
    for (let i = 0; i < 3; i++) waits.push(limiter.wait(key))
  }
  const reasons = Promise.all(waits.map(reasonOf))
  await resolved(limiter.close())
  for (const reason of await resolved(reasons)) assertIsError(reason, 'ERR_MILLRACE_CLOSED', 'limiter')
})

test('close leaves no timer behind', async () => {
  const timers = () => getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
  const before = timers()
  const limiter = createLimiter({ limit: 1, window: '1h', maxKeys: 20 })
  limiter.check('key')
  const reason = reasonOf(limiter.wait('key'))
  assert.is(timers(), before + 1)
  await resolved(limiter.close())
  assertIsError(await reason, 'ERR_MILLRACE_CLOSED', 'limiter')
  assert.is(timers(), before)
})

test('a cost above the limit is never admitted: a rejection at once, and the line goes on', async () => {
  const { limiter } = limiterWith()
  const act = () => limiter.wait('key', { cost: 6 })
  const error = await assertRejects(act, 'ERR_MILLRACE_NEVER_ADMITTED', 'cost')
  assert.is(error.value, 6)
  assert.match(error.expected, '5')
  assert.ok((await resolved(limiter.wait('key', { cost: 5 }))).allowed)
})

test('a key blocked for ever is never admitted, from the start or while it is waited for', async () => {
  const { limiter, waiting } = await limiterWithWaiter()
  limiter.block('other', Number.POSITIVE_INFINITY)
  await assertRejects(() => limiter.wait('other'), 'ERR_MILLRACE_NEVER_ADMITTED', 'key')
  limiter.block('key', Number.POSITIVE_INFINITY)
  limiter.update('default', { limit: 5 }) // wakes them
  assertIsError(await reasonOf(waiting), 'ERR_MILLRACE_NEVER_ADMITTED', 'key')
})

test('a limit lowered below a waiting cost rejects that wait, and the next is served', async () => {
  const { limiter } = limiterWith()
  limiter.check('key', 1)
  const large = reasonOf(limiter.wait('key', { cost: 5 }))
  const small = limiter.wait('key', { cost: 1 })
  await until(() => limiter.stats().denied > 0, 'the first try')
  limiter.update('default', { limit: 4 })
  assertIsError(await resolved(large), 'ERR_MILLRACE_NEVER_ADMITTED', 'cost')
  assert.is((await resolved(small)).remaining, 2)
})

test.run()
