// Checks of the package for every runtime. scripts/test-runtimes.mjs runs it in a project with the package
// installed. `--keep-pool` does not close the pool, for a runtime on which close() does not resolve.
import * as assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import * as imported from 'millrace'

const { createLimiter, manualClock } = imported
const clock = manualClock(1_000)
const limiter = createLimiter({ limit: 3, window: '1m', clock })

const parts = {
  require() {
    assert.equal(createRequire(import.meta.url)('millrace').createLimiter, createLimiter)
  },
  check() {
    const allowed = [1, 2, 3, 4].map(() => limiter.check('alice').allowed)
    assert.deepEqual(allowed, [true, true, true, false])
    assert.ok(createLimiter({ limit: 1, window: '1s' }).check('by the default clock').allowed)
  },
  batches() {
    assert.deepEqual([...limiter.checkMany(['alice', 'bob', 'bob']).allowed], [0, 1, 1])
  },
  async wait() {
    const waiting = limiter.wait('alice')
    clock.advance(61_000)
    assert.ok((await waiting).allowed)
  },
  async 'attach in a worker'() {
    const worker = new Worker(new URL('./worker.mjs', import.meta.url), { workerData: limiter.share() })
    await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
    assert.equal(limiter.peek('carol').remaining, 2)
  },
  async pool() {
    const pool = createLimiter({ limit: 1, window: '1m', engine: 'pool', pool: { maxThreads: 1 } })
    assert.ok((await pool.check('alice')).allowed)
    assert.deepEqual([...(await pool.checkMany(['alice', 'bob'])).allowed], [0, 1])
    if (!process.argv.includes('--keep-pool')) await pool.close()
  },
}

for (const [name, run] of Object.entries(parts)) {
  await run()
  console.log(name)
}
process.exit(0)
