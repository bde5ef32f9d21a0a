// run: also-full, modules
import { createLimiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { RingClient } from '#millrace/engines/pool/ring-client.js'
import { assertRejects, resolved, START_MS, until } from '../../limiter/support.js'
import { sized } from '../../size.js'

/** More than the number of threads that may end at start-up before a pool gives up. */
const TIMES = 12
/** Milliseconds between the moments at which a pool that starts is closed. */
const STEP = sized({ quick: 6, full: 1 })

test('a call during which the thread throws rejects with that error, and the pool keeps working', async () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter({ limit: 5, window: '1m', maxKeys: 20, engine: 'pool', clock })
  assert.is((await resolved(limiter.check('a'))).remaining, 4)
  clock.set(1e300) // too large to distinguish from a granule later
  for (let i = 0; i < TIMES; i++) {
    const calls = [() => limiter.check('a'), () => limiter.checkMany(['a', 'b'])]
    for (const call of calls) {
      const error = await assertRejects(call, 'ERR_MILLRACE_WORKER_LOST', 'engine')
      assert.is(error.mayBeCharged, true)
      assert.match(String(error.cause), 'milliseconds small enough to distinguish')
    }
  }
  clock.set(START_MS)
  const [single, batch] = [limiter.check('a'), limiter.checkMany(['a', 'b'], 1, { remaining: true })]
  assert.is((await resolved(single)).remaining, 3)
  assert.equal([...(await resolved(batch)).remaining!], [2, 4])
  await resolved(limiter.close())
})

test('what is published while the replies of a dead thread are read starts no server: it would decide them again', async () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter({ limit: 5, window: '1m', maxKeys: 20, engine: 'pool', clock })
  await resolved(limiter.check('a'))
  const { publishFinished } = RingClient.prototype
  const started: boolean[] = []
  RingClient.prototype.publishFinished = function () {
    publishFinished.call(this)
    started.push(this.publish()) // as the backlog does
  }
  try {
    clock.set(1e300)
    await assertRejects(() => limiter.check('a'), 'ERR_MILLRACE_WORKER_LOST', 'engine')
  } finally {
    RingClient.prototype.publishFinished = publishFinished
    clock.set(START_MS)
  }
  assert.equal(started, [false])
  assert.is((await resolved(limiter.check('a'))).remaining, 3)
  await resolved(limiter.close())
})

test('a pool that is closed while its threads start ends them without ending the process', async () => {
  for (let i = 0; i < 60; i += STEP) {
    const options = { limit: 5, window: '1m', maxKeys: 20, engine: 'pool', pool: { minThreads: 2 } } as const
    const limiter = createLimiter(options)
    const last = performance.now() + i
    await until(() => performance.now() >= last, 'the next millisecond')
    await resolved(limiter.close())
  }
})

test.run()
