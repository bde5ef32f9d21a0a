// run: typescript, modules
// Threads that bring the kept period of a calendar up to date at the same moment.
import { Worker } from 'node:worker_threads'
import { attachLimiter, createLimiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { HEADER } from '#millrace/memory/layout.js'

const DAY_MS = 86_400_000
const DAYS = 400
const LIMIT = 3

/** Two threads of it, each by data of its own, take turns on no lock. Their clock stands in each round. */
const CODE = `
  const { workerData, parentPort } = require('node:worker_threads')
  import('millrace').then(({ attachLimiter }) => {
    const limiter = attachLimiter(workerData.share)
    const rounds = new Int32Array(workerData.rounds)
    let admitted = 0
    for (let round = 1; round <= ${DAYS}; round++) {
      while (Atomics.load(rounds, 0) < round) Atomics.wait(rounds, 0, round - 1)
      for (let i = 0; i < ${LIMIT}; i++) if (limiter.check('key').allowed) admitted++
      Atomics.add(rounds, 1, 1)
      Atomics.notify(rounds, 1)
    }
    parentPort.postMessage(admitted)
  })`

test('of threads that begin a period at once, all go by the same one: each has its limit, once', async () => {
  const clock = manualClock(Date.parse('2026-01-01T00:00Z'))
  const rule = { algorithm: 'fixed-window', align: 'calendar', period: 'day' } as const
  const limiter = createLimiter({ limit: LIMIT, ...rule, maxKeys: 20, clock })
  const rounds = new Int32Array(new SharedArrayBuffer(8))
  const workerData = { share: limiter.share(), rounds: rounds.buffer }
  const workers = [0, 1].map(() => new Worker(CODE, { eval: true, workerData }))
  const counts = workers.map((worker) => new Promise<number>((resolve) => worker.once('message', resolve)))
  for (let round = 1; round <= DAYS; round++) {
    clock.set(Date.parse('2026-01-01T00:00Z') + round * DAY_MS)
    Atomics.store(rounds, 0, round)
    Atomics.notify(rounds, 0)
    for (let done = 0; done < 2 * round; done = Atomics.load(rounds, 1))
      await Atomics.waitAsync(rounds, 1, done).value
  }
  const admitted = await Promise.all(counts)
  assert.is(admitted[0]! + admitted[1]!, DAYS * LIMIT)
  await Promise.all(workers.map((worker) => worker.terminate()))
})

test('the bounds of the present period are in the header, whole', () => {
  const clock = manualClock(Date.parse('2026-06-10T12:00Z'))
  const rule = {
    algorithm: 'fixed-window',
    align: 'calendar',
    period: 'month',
    timeZone: 'Asia/Tokyo',
  } as const
  const limiter = createLimiter({ limit: LIMIT, ...rule, maxKeys: 20, clock })
  const words = new Int32Array(limiter.share().buffer)
  assert.equal([...words.subarray(HEADER.PERIOD, HEADER.PERIOD + 2)], [0, 0], 'none has begun')
  attachLimiter(limiter.share()).check('key')
  const minutes = (iso: string) => Date.parse(iso) / 60_000
  assert.equal(
    [...words.subarray(HEADER.PERIOD, HEADER.PERIOD + 2)],
    [minutes('2026-05-31T15:00Z'), minutes('2026-06-30T15:00Z')],
  )
})

test.run()
