// The default clock of a thread in a runtime whose process.hrtime() is a clock of its own: a worker replaces
// it before it loads the package.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { attachLimiter, createLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { monotonicClock } from '#millrace/core/clock.js'
import type { SharedLimiter } from '#millrace/engines/share.js'
import { assertRaises } from '../limiter/support.js'

const MINUTE = 60_000
const PACKAGE = new URL('../../lib/index.js', import.meta.url).href
const CLOCK = new URL('../../lib/core/clock.js', import.meta.url).href
const hasAddon = createLimiter({ limit: 1, window: '1h' }).stats().native === 'addon'

interface Found {
  code?: string
  option?: string
  /** Whether the key, whose limit is used up, was admitted. */
  allowed: boolean
  ms: number
}

/** What a worker finds whose `process.hrtime()` is off by `offMs`, or begins at 0 (undefined). */
async function inWorker(shared: SharedLimiter, offMs: number | undefined, natives: string[]): Promise<Found> {
  const code = `
    const { parentPort, workerData: { shared, offMs, natives } } = require('node:worker_threads')
    const real = process.hrtime
    const zeroMs = offMs ?? -(real()[0] * 1e3 + real()[1] / 1e6)
    process.hrtime = () => {
      const ms = real()[0] * 1e3 + real()[1] / 1e6 + zeroMs
      return [Math.floor(ms / 1e3), (ms % 1e3) * 1e6]
    }
    Promise.all([import('${PACKAGE}'), import('${CLOCK}')]).then(([{ attachLimiter }, { monotonicClock }]) => {
      try {
        for (const native of natives) {
          process.env.MILLRACE_NATIVE = native
          const { allowed } = attachLimiter(shared).check('key')
          parentPort.postMessage({ allowed, ms: monotonicClock.now() })
        }
      } catch ({ code, option, message }) {
        parentPort.postMessage({ code, option, message })
      }
    })`
  const worker = new Worker(code, { eval: true, workerData: { shared, offMs, natives } })
  const all: Found[] = []
  worker.on('message', (found: Found) => all.push(found))
  await once(worker, 'exit')
  return all.at(-1)!
}

const usedUp = () => {
  const limiter = createLimiter({ limit: 1, window: MINUTE, granularity: 5, maxKeys: 10 })
  limiter.check('key')
  return limiter.share()
}

for (const [how, offMs] of [
  ['begins at 0', undefined],
  ['is an hour ahead', 60 * MINUTE],
  ['is half a second ahead', 500],
  ['is a minute behind', -MINUTE],
] as const) {
  test(`without the addon a thread whose process.hrtime() ${how} is refused`, async () => {
    const { code, option } = await inWorker(usedUp(), offMs, ['0'])
    assert.equal([code, option], ['ERR_MILLRACE_CLOCKS_DIFFER', 'shared.clock'])
  })

  test(`with the addon a thread whose process.hrtime() ${how} has the clock of the others`, async () => {
    if (!hasAddon) return
    const beforeMs = monotonicClock.now()
    const { code, allowed, ms } = await inWorker(usedUp(), offMs, ['1'])
    assert.equal([code, allowed], [undefined, false])
    assert.ok(beforeMs <= ms && ms <= monotonicClock.now(), `${ms} after ${beforeMs}`)
  })
}

test('a difference within 5 ms, or within a granule if that is longer, is none', async () => {
  assert.is((await inWorker(usedUp(), 3, ['0'])).allowed, false)
  const coarse = createLimiter({ limit: 1, window: '1h' })
  coarse.check('key')
  assert.is((await inWorker(coarse.share(), 40_000, ['0'])).allowed, false)
})

test('a thread that has decided by another clock does not go on with that of the addon', async () => {
  if (!hasAddon) return
  const coarse = createLimiter({ limit: 1, window: '1h' })
  coarse.check('key')
  const { code, option } = await inWorker(coarse.share(), 40_000, ['0', '1'])
  assert.equal([code, option], ['ERR_MILLRACE_CLOCKS_DIFFER', 'clock'])
})

test('a clock of your own is not compared', () => {
  const own = createLimiter({ limit: 1, window: MINUTE, clock: { now: () => 5 * MINUTE } })
  own.check('key')
  assert.ok(attachLimiter(own.share(), { clock: { now: () => 0 } }).check('other').allowed)
})

test('a share with a damaged clock sample is refused', () => {
  const share = createLimiter({ limit: 1, window: MINUTE }).share()
  const samples = [
    null,
    5,
    {},
    { atLeastMs: Number.NaN },
    { atLeastMs: '1' },
    { atLeastMs: 1, upAheadMs: null },
  ]
  for (const clockSample of samples) {
    const act = () => attachLimiter({ ...share, clockSample: clockSample as never })
    assertRaises(act, 'ERR_MILLRACE_INVALID_SHARE', 'shared.clockSample')
  }
})

test.run()
