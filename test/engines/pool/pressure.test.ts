import { getEventListeners } from 'node:events'
import type { MillraceError } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertIsError, assertRaises, settled } from '../../limiter/support.js'
import { pooled } from '../both.js'

test('a call beyond the bound on pending calls is rejected, charges nothing, and names the option', async () => {
  await using made = pooled({ limit: 100 }, { maxPending: 50 })
  const { limiter } = made
  const asked = Array.from({ length: 60 }, () => limiter.check('key'))
  const outcomes = await Promise.allSettled(asked)
  assert.equal(
    outcomes.map(({ status }) => status),
    [...Array(50).fill('fulfilled'), ...Array(10).fill('rejected')],
  )
  for (const outcome of outcomes.slice(50)) {
    const { reason } = outcome as PromiseRejectedResult
    assert.is(assertIsError(reason, 'ERR_MILLRACE_OVERLOADED', 'pool').value, 50)
  }
  assert.is(await limiter.usage('key'), 50)
  assert.ok((await limiter.check('key')).allowed, 'works again once there is room')
})

test('a batch counts by its keys, and one larger than the bound passes if nothing else is pending', async () => {
  await using made = pooled({ limit: 1_000 }, { maxPending: 50 })
  const { limiter } = made
  const keys: string[] = Array(200).fill('key')
  const [batch, refused, free] = await Promise.allSettled([
    limiter.checkMany(keys),
    limiter.checkMany(['key']),
    limiter.checkMany([]),
  ])
  assert.is(batch.status, 'fulfilled')
  assertIsError((refused as PromiseRejectedResult).reason, 'ERR_MILLRACE_OVERLOADED', 'pool')
  assert.is(free.status, 'fulfilled')
  assert.is(await limiter.usage('key'), 200)
})

test('a decision whose refund was rejected for lack of room can be refunded later', async () => {
  await using made = pooled({ limit: 100 }, { maxPending: 2 })
  const { limiter } = made
  const decision = await limiter.check('key', 5)
  const waiting = [limiter.check('other'), limiter.check('other')]
  const outcome = await settled(limiter.refund(decision))
  assertIsError((outcome as PromiseRejectedResult).reason, 'ERR_MILLRACE_OVERLOADED', 'pool')
  await Promise.all(waiting)
  assert.is(await limiter.refund(decision), 5)
})

test('a call with an aborted signal is not made', async () => {
  await using made = pooled()
  const { limiter } = made
  const signal = AbortSignal.abort('gone')
  for (const call of [
    () => limiter.check('key', 1, { signal }),
    () => limiter.peek('key', 1, { signal }),
    () => limiter.checkMany(['key'], 1, { signal }),
  ]) {
    const error = await rejection(call())
    assert.equal([error.cause, error.mayBeCharged], ['gone', false])
  }
  assert.is(await limiter.usage('key'), 0)
})

test('a call that is aborted in flight rejects at once, and its charge stays', async () => {
  await using made = pooled()
  const { limiter } = made
  const controller = new AbortController()
  const { signal } = controller
  const calls = [limiter.check('key', 2, { signal }), limiter.checkMany(['other', 'other'], 1, { signal })]
  controller.abort()
  for (const error of await Promise.all(calls.map(rejection))) {
    assert.ok(error.cause instanceof DOMException)
    assert.is(error.mayBeCharged, true)
  }
  assert.equal([await limiter.usage('key'), await limiter.usage('other')], [2, 2])
})

test('a call that is aborted while it waits for room in a ring is never made', async () => {
  await using made = pooled({ limit: 100_000 }, { maxThreads: 1 })
  const { limiter } = made
  const before = Array.from({ length: 3_000 }, () => limiter.check('key'))
  const controller = new AbortController()
  const { signal } = controller
  const single = limiter.check('key', 7, { signal })
  const batch = limiter.checkMany(Array(20_000).fill('other'), 1, { signal })
  const after = limiter.check('key')
  controller.abort('too long')
  for (const error of await Promise.all([single, batch].map(rejection))) {
    assert.equal([error.cause, error.mayBeCharged], ['too long', false])
  }
  await Promise.all(before)
  assert.is((await after).remaining, 100_000 - 3_001)
  assert.is(await limiter.usage('other'), 0)
})

test('a signal that is aborted after the reply changes nothing, and has no listener left', async () => {
  await using made = pooled()
  const { limiter } = made
  const controller = new AbortController()
  const { signal } = controller
  const decision = await limiter.check('key', 1, { signal })
  await limiter.checkMany(['key'], 1, { signal })
  assert.is(getEventListeners(signal, 'abort').length, 0)
  controller.abort()
  assert.ok(decision.allowed)
})

test('a `wait` call that is aborted while a thread decides leaves no charge', async () => {
  await using made = pooled()
  const { limiter } = made
  const controller = new AbortController()
  const wait = limiter.wait('key', { cost: 3, signal: controller.signal })
  controller.abort('gone')
  const outcome = await settled(wait)
  assert.is((outcome as PromiseRejectedResult).reason, 'gone')
  await limiter.peek('key')
  assert.is(await limiter.usage('key'), 0)
})

test('a `wait` call that is aborted while no further call is accepted leaves no charge', async () => {
  await using made = pooled({ limit: 2, maxKeys: 200 }, { maxPending: 100, maxThreads: 1 })
  const { limiter } = made
  const keys = limiter.pack(Array.from({ length: 100 }, (_, i) => `${i}`))
  const controller = new AbortController()
  const first = limiter.check('first').then(() => limiter.checkMany(keys))
  const wait = limiter.wait('key', { cost: 2, signal: controller.signal })
  await undefined // by now its request is in flight
  controller.abort()
  assert.is((await settled(wait)).status, 'rejected')
  await first
  assert.is(await limiter.usage('key'), 0)
})

test('one signal can abort any number of calls, by one listener', async () => {
  await using made = pooled({ limit: 100 })
  const { limiter } = made
  const controller = new AbortController()
  const { signal } = controller
  const calls = Array.from({ length: 20 }, () => limiter.check('key', 1, { signal }))
  calls.push(...Array.from({ length: 20 }, () => limiter.wait('other', { signal })))
  assert.is(getEventListeners(signal, 'abort').length, 1)
  await calls.shift()
  controller.abort('gone')
  for (const outcome of await Promise.allSettled(calls.slice(20))) assert.is(outcome.status, 'rejected')
  await Promise.allSettled(calls)
  assert.is(getEventListeners(signal, 'abort').length, 0)
})

test('a test that mocks the timers of its own code does not stop the pool', async () => {
  await using made = pooled()
  const { limiter } = made
  await limiter.check('key')
  const { queueMicrotask, setImmediate, setTimeout } = globalThis
  try {
    Object.assign(globalThis, { queueMicrotask() {}, setImmediate() {}, setTimeout() {} })
    assert.is((await limiter.check('key')).remaining, 3)
  } finally {
    Object.assign(globalThis, { queueMicrotask, setImmediate, setTimeout })
  }
})

test('options of the threads that can only be mistakes are refused by name', () => {
  for (const [options, name] of [
    [{ minThreads: 0 }, 'pool.minThreads'],
    [{ minThreads: 2_000 }, 'pool.minThreads'],
    [{ minThreads: 3, maxThreads: 2 }, 'pool.maxThreads'],
    [{ maxThreads: 1e300 }, 'pool.maxThreads'],
    [{ maxPending: 0.5 }, 'pool.maxPending'],
    [{ resourceLimits: { maxOldGenerationSizeMb: 9.9 } }, 'pool.resourceLimits.maxOldGenerationSizeMb'],
    [{ resourceLimits: { stackSizeMb: 0.2 } }, 'pool.resourceLimits.stackSizeMb'],
    [{ resourceLimits: { codeRangeSizeMb: 1e12 } }, 'pool.resourceLimits.codeRangeSizeMb'],
    [{ resourceLimits: { maxOldGenerationSizeMb: Infinity } }, 'pool.resourceLimits.maxOldGenerationSizeMb'],
    [{ resourceLimits: { heap: 1 } }, 'pool.resourceLimits'],
    [{ threads: 1 }, 'pool'],
  ] as const) {
    assertRaises(() => pooled({}, options as object), 'ERR_MILLRACE_INVALID_OPTION', name)
  }
})

test('an undefined resource limit of the threads is Node’s default', async () => {
  await using made = pooled({}, { resourceLimits: { maxOldGenerationSizeMb: undefined as never } })
  assert.ok((await made.limiter.check('key')).allowed)
})

test('close answers all pending calls, in the rings and in the backlog', async () => {
  const { limiter } = pooled({ limit: 100_000 }, { maxThreads: 1 })
  const asked = Array.from({ length: 5_000 }, () => limiter.check('key'))
  const batch = limiter.checkMany(Array(20_000).fill('other'))
  const closed = limiter.close()
  const decisions = await Promise.all(asked)
  assert.is(decisions.at(-1)!.remaining, 95_000)
  assert.is(
    (await batch).allowed.reduce((sum, one) => sum + one, 0),
    20_000,
  )
  await closed
})

async function rejection(call: Promise<unknown>): Promise<MillraceError> {
  const outcome = await settled(call)
  assert.is(outcome.status, 'rejected')
  return assertIsError((outcome as PromiseRejectedResult).reason, 'ERR_MILLRACE_ABORTED', 'call')
}

test.run()
