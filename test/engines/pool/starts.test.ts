// Threads that cannot be started. The constructor of `Worker` throws here, as it does on a system without
// memory for a stack. A real system never refuses a thread on demand.
import { createRequire } from 'node:module'
import type { Worker } from 'node:worker_threads'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRaises, assertRejects, resolved, until } from '../../limiter/support.js'
import { pooled } from '../both.js'

/** The module object from which piscina takes `Worker`. */
const source = createRequire(import.meta.url)('node:worker_threads') as { Worker: typeof Worker }
const { Worker: Real } = source

const living = new Set<Worker>()
let started = 0
/** The number of threads that may still start. */
let left = Number.POSITIVE_INFINITY

source.Worker = class extends Real {
  constructor(...options: ConstructorParameters<typeof Worker>) {
    if (left === 0) throw Object.assign(new Error('EAGAIN'), { code: 'ERR_WORKER_INIT_FAILED' })
    super(...options)
    left--
    started++
    living.add(this)
    this.once('exit', () => living.delete(this))
  }
}

test('a pool that cannot start all its threads keeps none', async () => {
  left = 2
  const error = assertRaises(() => pooled({}, { minThreads: 4 }), 'ERR_MILLRACE_NO_THREADS', 'engine')
  assert.is((error.cause as Error).message, 'EAGAIN')
  assert.is(started, 2)
  await until(() => living.size === 0, 'the end of those that were started')
})

test('calls reject while no thread can replace one that ended, and succeed later', async () => {
  left = 2
  const { limiter } = pooled({}, { minThreads: 2, maxThreads: 2 })
  await limiter.ready()
  await Promise.all([...living].map((thread) => thread.terminate()))
  await assertRejects(() => limiter.check('a'), 'ERR_MILLRACE_NO_THREADS', 'engine')
  assert.is(living.size, 0)
  left = Number.POSITIVE_INFINITY
  assert.is((await resolved(limiter.check('a'))).remaining, 4)
  assert.is(living.size, 2)
  left = 0
  await resolved(limiter.close())
  assert.is(living.size, 0)
})

test.run()
