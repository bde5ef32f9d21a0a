// run: once, own
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

/** A limiter whose key is at its limit, with a pending `wait` call for that key. */
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
  test(`${name} wakes a pending call, without any time passing`, async () => {
    const { limiter, used, waiting } = await limiterWithWaiter()
    wake(limiter, used)
    assert.ok((await resolved(waiting)).allowed)
  })

  test(`${name} wakes a pending call with a custom clock, and clears its timer`, async () => {
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
    await limiter.close() // rejects a call that is still pending
    assert.equal([(await outcome).status, after], ['fulfilled', before])
  })
}

test('unblock wakes a call that waits for the end of a block', async () => {
  const { limiter } = limiterWith()
  limiter.block('key', '1d')
  const waiting = limiter.wait('key')
  await until(() => limiter.stats().denied > 0, 'the first try')
  limiter.unblock('key')
  assert.ok((await resolved(waiting)).allowed)
})

test('a pending call is admitted when a block ends, also when a shorter block has replaced it', async () => {
  const { clock, limiter } = limiterWith()
  limiter.block('key', '1d')
  const waiting = limiter.wait('key')
  limiter.block('key', '10s')
  clock.advance(10_000)
  assert.is((await resolved(waiting)).remaining, 4)
})

test('a block replaced by a shorter one wakes a pending call, also with a custom clock', async () => {
  let now = 1_000_123
  const { limiter } = limiterWith({ clock: { now: () => now } })
  limiter.block('key', '1d')
  const outcome = settled(limiter.wait('key'))
  limiter.block('key', 100)
  now += 200
  await turn()
  await limiter.close() // rejects a call that is still pending
  assert.is((await outcome).status, 'fulfilled')
})

test('a call with an aborted signal rejects with the signal’s reason, and charges nothing', async () => {
  const { limiter } = limiterWith()
  const reason = new Error('mine')
  assert.is(await reasonOf(limiter.wait('key', { signal: AbortSignal.abort(reason) })), reason)
  const unnamed = (await reasonOf(limiter.wait('key', { signal: AbortSignal.abort() }))) as Error
  assert.is(unnamed.name, 'AbortError')
  assert.is(limiter.usage('key'), 0)
})

test('a pending call that is aborted rejects with the signal’s reason, and charges nothing, also later', async () => {
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

test('if the first call in a queue is aborted the next tries at once; if another is, the rest keep their order', async () => {
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

test('a call removes its listener from the signal when it settles', async () => {
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

test('an abort after the admission changes nothing', async () => {
  const { limiter } = limiterWith()
  const controller = new AbortController()
  const decision = await resolved(limiter.wait('key', { signal: controller.signal }))
  controller.abort()
  await turn()
  assert.ok(decision.allowed)
  assert.is(limiter.usage('key'), 1)
})

test('close rejects every pending call, on every key', async () => {
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

test('close leaves no timer', async () => {
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

test('a call with a cost above the limit rejects at once, and the queue moves on', async () => {
  const { limiter } = limiterWith()
  const act = () => limiter.wait('key', { cost: 6 })
  const error = await assertRejects(act, 'ERR_MILLRACE_NEVER_ADMITTED', 'cost')
  assert.is(error.value, 6)
  assert.match(error.expected, '5')
  assert.ok((await resolved(limiter.wait('key', { cost: 5 }))).allowed)
})

test('calls for a key blocked for ever reject, before they wait and while they wait', async () => {
  const { limiter, waiting } = await limiterWithWaiter()
  limiter.block('other', Number.POSITIVE_INFINITY)
  await assertRejects(() => limiter.wait('other'), 'ERR_MILLRACE_NEVER_ADMITTED', 'key')
  limiter.block('key', Number.POSITIVE_INFINITY)
  limiter.update('default', { limit: 5 }) // wakes the calls
  assertIsError(await reasonOf(waiting), 'ERR_MILLRACE_NEVER_ADMITTED', 'key')
})

test('a limit lowered below the cost of a pending call rejects that call, and the next is served', async () => {
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
