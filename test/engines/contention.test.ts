// 16 threads that do nothing but change the same cells, and give each other's keys the same places.
// run: full, also-long
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { createLimiter, type RuleOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { halfOf, sized } from '../size.js'

const THREADS = 16
const ROUNDS = sized({ quick: 400, full: 400, long: 1_000 })
const PACKAGE = new URL('../../lib/index.js', import.meta.url).href

const CODE = `
  const { parentPort, workerData: { share, rounds, thread } } = require('node:worker_threads')
  import('${PACKAGE}').then(({ attachLimiter }) => {
    const limiter = attachLimiter(share)
    const decide = (key) => limiter.check(key)
    parentPort.once('message', () => {
      for (let i = 0; i < rounds; i++) {
        const decision = decide('one')
        decide('new ' + i)
        decide('own ' + thread + ' ' + (i & 63))
        if (i % 2 === 0) limiter.refund(decision)
        if (i % 3 === 0) limiter.refund('one', 2)
        if (i % 5 === 0) limiter.penalize('one', 1)
        if (i % 7 === 0) limiter.block('one', 1)
        if (i % 11 === 0) limiter.unblock('one')
        if (i % 13 === 0) limiter.peek('one').toJSON()
      }
      process.exit()
    })
    parentPort.postMessage('ready')
  })`

const RULES: Record<string, Pick<RuleOptions, 'algorithm' | 'rangeSum' | 'granularity' | 'edge'>> = {
  'a sliding window of milliseconds': { granularity: 1 },
  'a smooth edge': { edge: 'smooth', granularity: 5 },
  'block sums': { granularity: 1, rangeSum: 'blocks' },
  'a Fenwick tree': { granularity: 1, rangeSum: 'fenwick' },
  'a sliding log': { algorithm: 'sliding-log' },
  'a fixed window': { algorithm: 'fixed-window' },
  'a token bucket': { algorithm: 'token-bucket' },
}

for (const [name, rule] of halfOf(Object.entries(RULES))) {
  test(`${name}: no call of 16 threads gives up`, async () => {
    const limiter = createLimiter({ limit: 1_000, window: 500, maxKeys: 1, ...rule })
    const share = limiter.share()
    const workers = Array.from({ length: THREADS }, (_, thread) => {
      const workerData = { share, rounds: ROUNDS, thread }
      return new Worker(CODE, { eval: true, workerData })
    })
    await Promise.all(workers.map((worker) => once(worker, 'message')))
    const ended = workers.map((worker) => once(worker, 'exit'))
    for (const worker of workers) worker.postMessage('go')
    await Promise.all(ended)
    assert.is(limiter.stats().damaged, 0)
  })
}

test.run()
