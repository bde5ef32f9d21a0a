// run: also-full, also-long
// Threads that decide by two rules while another one clears all keys and moves the clock.
import { Worker } from 'node:worker_threads'
import { createLimiter, manualClock, type SharedLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sized } from '../size.js'

const DECIDERS = 2
const KEYS = 3
const BURST = 6
const HOURLY = 40
const EVENTS = sized({ quick: 400, full: 6_000, long: 20_000 })

/** Shared by all threads. A counter is odd while its event is under way. */
export interface ClearTask {
  readonly shared: SharedLimiter
  readonly isClearing: boolean
  readonly seed: number
  readonly keys: number
  readonly events: number
  /** Events (clears and clock moves), clears, decisions, and whether the threads must end. */
  readonly counters: Int32Array
  /** Units by event and key, of decisions that no event overlapped. */
  readonly byEvent: Int32Array
  /** The same of decisions that no clear overlapped. */
  readonly byClear: Int32Array
}

const words = (length: number) => new Int32Array(new SharedArrayBuffer(4 * length))

function ended(worker: Worker): Promise<void> {
  return new Promise((resolve, reject) => {
    worker.on('error', reject)
    worker.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a thread ended with ${code}`))))
  })
}

test('between two clears no rule admits more than its limit, and a clear at rest leaves nothing', async () => {
  const clock = manualClock(1e6)
  const limiter = createLimiter({
    rules: [
      { name: 'burst', limit: BURST, window: 10, granularity: 1 },
      { name: 'hourly', limit: HOURLY, window: '1h' },
    ],
    maxKeys: 10,
    clock,
  })
  const counters = words(4)
  const [byEvent, byClear] = [words(KEYS * (EVENTS + 1)), words(KEYS * (EVENTS + 1))]
  const workers = Array.from({ length: DECIDERS + 1 }, (_, seed) => {
    const task: ClearTask = {
      shared: limiter.share(),
      isClearing: seed === 0,
      seed,
      keys: KEYS,
      events: EVENTS,
      counters,
      byEvent,
      byClear,
    }
    return new Worker(new URL('./clear-all-threads-worker.js', import.meta.url), { workerData: task })
  })
  try {
    await Promise.all(workers.map(ended))
  } finally {
    for (const worker of workers) await worker.terminate()
  }
  assert.is(counters[0], 2 * EVENTS)
  assert.ok(counters[1]! > 0)
  const most = (units: Int32Array) => units.reduce((a, b) => Math.max(a, b))
  assert.ok(most(byEvent) > 0 && most(byEvent) <= BURST, `burst: ${most(byEvent)}`)
  assert.ok(most(byClear) > 0 && most(byClear) <= HOURLY, `hourly: ${most(byClear)}`)

  limiter.clearAll()
  for (let key = 0; key < KEYS; key++) {
    for (const rule of ['burst', 'hourly']) assert.is(limiter.usage(`key ${key}`, undefined, { rule }), 0)
    for (let admitted = 0; admitted + BURST <= HOURLY; admitted += BURST) {
      assert.ok(limiter.check(`key ${key}`, BURST).allowed, `${admitted} used`)
      assert.is(limiter.check(`key ${key}`).rule, 'burst')
      clock.advance(11)
    }
    assert.ok(limiter.check(`key ${key}`, HOURLY % BURST).allowed)
    assert.is(limiter.check(`key ${key}`).rule, 'hourly')
  }
  await limiter.close()
})

test.run()
