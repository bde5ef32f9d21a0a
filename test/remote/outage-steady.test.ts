// An outage ends when the store answers steadily. A store that fails now and then is one outage, not one for each call.
import { setImmediate } from 'node:timers/promises'
import { createBackendLimiter, type OnOutage, type OutageChange, type Values } from 'millrace/backend'
import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { random as randomOf } from '../algorithms/random.js'
import { poll } from '../redis/poll.js'

const MINUTE_MS = 60_000

const warnings: { code?: string; message: string }[] = []
process.on('warning', (warning) => warnings.push(warning))

/** A store that fails when it is told to, and a limiter on it by the clock of the test. */
function flaky(prefix: string, onOutage: OnOutage = 'closed') {
  const state = { isDown: false, nowMs: 1 }
  const changes: (OutageChange & { readonly atMs: number })[] = []
  const values: Values = {
    read: (keys) =>
      state.isDown ? Promise.reject(new Error('down')) : Promise.resolve(keys.map(() => undefined)),
    swap: async () => true,
  }
  const limiter = createBackendLimiter({
    values,
    source: 'own',
    prefix,
    onOutage,
    nodes: 1,
    limit: 1_000_000,
    window: '1h',
    onOutageChange: (change: OutageChange) => changes.push({ ...change, atMs: state.nowMs }),
    testTime: () => state.nowMs,
  } as never)
  const ask = async (isDown: boolean, afterMs: number) => {
    state.nowMs += afterMs
    state.isDown = isDown
    await limiter.check('key', 0)
  }
  return { ask, changes, limiter, state }
}

async function codesOf(prefix: string): Promise<(string | undefined)[]> {
  await setImmediate()
  return warnings.filter(({ message }) => message.includes(`'${prefix}'`)).map(({ code }) => code)
}

for (const onOutage of ['open', 'closed', 'local'] as const) {
  test(`${onOutage}: a store that fails one call in twenty is one outage`, async () => {
    const prefix = `one-in-twenty-${onOutage}`
    const { ask, changes, limiter } = flaky(prefix, onOutage)
    for (let i = 0; i < 12_000; i++) await ask(i % 20 === 0, 10)
    assert.equal(
      changes.map(({ state }) => state),
      ['outage'],
    )
    for (let i = 0; i < 200; i++) await ask(false, 10)
    assert.equal(
      changes.map(({ state }) => state),
      ['outage', 'recovered'],
    )
    assert.equal(await codesOf(prefix), ['MILLRACE_OUTAGE', 'MILLRACE_RECOVERED'])
    await limiter.close()
  })
}

test('at any rate and share of failures, messages alternate, none ends early, and they are few', async () => {
  const random = randomOf(20)
  for (let round = 0; round < 60; round++) {
    const prefix = `random-${round}`
    const { ask, changes, limiter, state } = flaky(prefix)
    const betweenMs = 1 + random() ** 3 * 20_000
    const share = random() ** 2
    let failedMs = Number.NEGATIVE_INFINITY
    let told = 0
    for (let i = 0; i < 400; i++) {
      const isDown = random() < share
      await ask(isDown, betweenMs * random())
      if (isDown) failedMs = state.nowMs
      for (const { state: kind, atMs } of changes.slice(told)) {
        assert.is(kind, told++ % 2 === 0 ? 'outage' : 'recovered')
        if (kind === 'recovered') assert.ok(atMs - failedMs >= 1_000, `${atMs - failedMs} ms`)
      }
    }
    // Seven in the first two minutes, for the pause doubles; then one a minute.
    const most = 2 * (8 + state.nowMs / MINUTE_MS)
    assert.ok(changes.length <= most, `${changes.length} messages, at most ${most}`)
    const codes = changes.map(({ state }) => (state === 'outage' ? 'MILLRACE_OUTAGE' : 'MILLRACE_RECOVERED'))
    assert.equal(await codesOf(prefix), codes)
    await limiter.close()
  }
})

test('outages that are more than a minute apart end within a second each', async () => {
  const { ask, changes, limiter } = flaky('apart')
  for (let i = 0; i < 20; i++) {
    await ask(true, MINUTE_MS)
    await ask(false, 999)
    assert.is(changes.length, 2 * i + 1)
    await ask(false, 1)
    assert.is(changes.length, 2 * i + 2)
  }
  await limiter.close()
})

test('an outage ends without another call, and the end of a limiter is not the end of an outage', async () => {
  const values = (isDown: () => boolean): Values => ({
    read: (keys) =>
      isDown() ? Promise.reject(new Error('down')) : Promise.resolve(keys.map(() => undefined)),
    swap: async () => true,
  })
  let isDown = true
  const own = { values: values(() => isDown), source: 'own', limit: 9, window: '1h' } as const
  const states: string[] = []
  const onOutageChange = ({ state }: OutageChange) => states.push(state)
  const limiter = createBackendLimiter({ ...own, prefix: 'quiet', onOutageChange })
  const closed = createBackendLimiter({ ...own, prefix: 'ended' })
  await Promise.all([limiter.check('key'), closed.check('key')])
  isDown = false
  await Promise.all([limiter.check('key'), closed.check('key')])
  await closed.close()
  await poll(() => states.length === 2, 'the end of the outage')
  assert.equal(states, ['outage', 'recovered'])
  await limiter.close()
  assert.equal(await codesOf('ended'), ['MILLRACE_OUTAGE'])
})

test('the window of a policy that is asked for no more holds back no end of an outage', async () => {
  let isDown = false
  let nowMs = 1
  const changes: string[] = []
  const config = memoryConfig()
  await config.put('other', { limit: 5, window: '2h' })
  const limiter = createBackendLimiter({
    values: {
      read: (keys: readonly string[]) =>
        isDown ? Promise.reject(new Error('down')) : Promise.resolve(keys.map(() => undefined)),
      swap: async () => true,
    },
    source: 'own',
    prefix: 'policies',
    config,
    default: { limit: 9, window: '1h' },
    onOutageChange: ({ state }: OutageChange) => changes.push(state),
    testTime: () => nowMs,
  } as never)
  const sources = async (...keys: string[]) =>
    Promise.all(keys.map(async (key) => (await limiter.check(key, 0)).source))
  await limiter.check('other') // finds its policy
  assert.equal(await sources('key', 'other'), ['own', 'own'])
  isDown = true
  assert.equal(await sources('key', 'other'), ['outage', 'outage'])
  isDown = false
  nowMs += 1_000
  assert.equal(await sources('key'), ['own'])
  assert.equal(changes, ['outage', 'recovered'])
  await limiter.close()
})

test.run()
