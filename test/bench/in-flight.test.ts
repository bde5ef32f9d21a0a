import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { LOOP_UNITS, timeInFlight } from '../../bench/in-flight.js'
import { exposeCollector } from './garbage.js'

exposeCollector()

test('the callers make every call once after the warm-up, and never exceed their number', async () => {
  let inFlight = 0
  let most = 0
  const calls: number[] = []
  const figures = await timeInFlight({ callers: 5, count: 40, keysPerCall: 1 }, async (i) => {
    calls.push(i)
    most = Math.max(most, ++inFlight)
    await nextTurn()
    inFlight--
  })
  assert.is(most, 5)
  assert.equal(
    calls.slice(-40),
    Array.from({ length: 40 }, (_, i) => i),
  )
  assert.equal(Object.keys(figures), Object.keys(LOOP_UNITS))
})

test('a synchronous result is not awaited', async () => {
  let turns = 0
  const counting = setInterval(() => turns++, 0).unref()
  let calls = 0
  await timeInFlight({ callers: 1, count: 1_000, keysPerCall: 1 }, () => calls++)
  clearInterval(counting)
  assert.equal([turns, calls], [0, 1_250])
})

test('a call of many keys counts as that many decisions', async () => {
  const loop = { callers: 1, count: 50 }
  const wait = () => {
    const until = performance.now() + 0.2
    while (performance.now() < until);
  }
  const { thousandASecond, p50Us, callerNs } = await timeInFlight({ ...loop, keysPerCall: 100 }, wait)
  assert.ok(p50Us! >= 200)
  assert.ok(callerNs! >= 2_000, `${callerNs} ns of 2,000`)
  assert.ok(thousandASecond! <= 500)
})

test('a failed call fails the run', async () => {
  const end = await timeInFlight({ callers: 3, count: 10, keysPerCall: 1 }, async (i) => {
    if (i === 7) throw new Error('call 7 failed')
  }).catch((error: unknown) => error)
  assert.match((end as Error).message, 'call 7 failed')
})

test.run()
