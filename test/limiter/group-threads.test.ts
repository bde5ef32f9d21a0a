// run: also-full, also-long, modules
// Threads check overlapping groups at once. The members are charged in different orders.
import { Worker } from 'node:worker_threads'
import { createLimiter, type LimiterOptions, manualClock, type SharedLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { monotonicClock } from '#millrace/core/clock.js'
import { mostIn } from '../judge/window-judge.js'
import { sized } from '../size.js'

const THREADS = sized({ quick: 3, full: 4 })
const ROUNDS = sized({ quick: 8_000, full: 80_000, long: 200_000 })
const KEYS = 3
const NAMES = ['account', 'address', 'device'] as const
const LIMITS = [60, 45, 50]

/** The log of all threads. A column is a key of one member. */
interface GroupTally {
  readonly keys: number
  readonly ticks: number
  /** Units by column. */
  readonly admitted: Int32Array
  /** Admissions by member. */
  readonly decisions: Int32Array
  /** Units by column and tick. */
  readonly byTick: Int32Array
}

export interface GroupTask {
  readonly shared: Record<string, SharedLimiter>
  readonly tally: GroupTally
  readonly gate: Int32Array
  readonly thread: number
  readonly threads: number
  readonly firstTick: number
  readonly rounds: number
  /** The threads go on until this reading of the clock. */
  readonly lastMs: number
  /** The share of the admissions that are refunded. */
  readonly refunds: number
}

const words = (length: number) => new Int32Array(new SharedArrayBuffer(4 * length))

function tallyOf(ticks: number): GroupTally {
  const columns = NAMES.length * KEYS
  return {
    keys: KEYS,
    ticks,
    admitted: words(columns),
    decisions: words(NAMES.length),
    byTick: words(columns * ticks),
  }
}

function limitersOf(options: Partial<Omit<LimiterOptions, 'engine'>>) {
  return LIMITS.map((limit, i) =>
    createLimiter({ name: NAMES[i]!, limit, window: '1m', maxKeys: 20, ...options }),
  )
}

async function run(
  limiters: ReturnType<typeof limitersOf>,
  tally: GroupTally,
  times: Pick<GroupTask, 'firstTick' | 'lastMs' | 'refunds'>,
): Promise<void> {
  const shared = Object.fromEntries(limiters.map((limiter, i) => [NAMES[i]!, limiter.share()]))
  const gate = words(1)
  const ends = Array.from({ length: THREADS }, (_, thread) => {
    const task: GroupTask = { shared, tally, gate, thread, threads: THREADS, rounds: ROUNDS, ...times }
    const worker = new Worker(new URL('./group-threads-worker.js', import.meta.url), { workerData: task })
    return new Promise<void>((resolve, reject) => {
      worker.on('error', reject)
      worker.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a thread ended with ${code}`))))
    })
  })
  await Promise.all(ends)
}

test('no member exceeds its limit, and charges that were taken back do not count', async () => {
  const limiters = limitersOf({ clock: manualClock(1e6) })
  const tally = tallyOf(1)
  await run(limiters, tally, { firstTick: 0, lastMs: 0, refunds: 0.3 })
  for (const [i, limiter] of limiters.entries()) {
    assert.is(limiter.stats().allowed, tally.decisions[i], `admissions by ${NAMES[i]}`)
    for (let key = 0; key < KEYS; key++) {
      const admitted = tally.admitted[i * KEYS + key]!
      assert.ok(admitted <= LIMITS[i]!, `${admitted} of ${LIMITS[i]}`)
      assert.is(limiter.usage(`key ${key}`), admitted, `${NAMES[i]} ${key}`)
      const left = LIMITS[i]! - admitted
      assert.ok(limiter.check(`key ${key}`, left).allowed, 'the rest of the limit is free')
      assert.not(limiter.check(`key ${key}`).allowed)
    }
  }
})

test('no window of a member exceeds its limit while time passes', async () => {
  const limiters = limitersOf({ window: 20, granularity: 1 })
  const startMs = monotonicClock.now()
  const tally = tallyOf(60_000)
  await run(limiters, tally, { firstTick: Math.floor(startMs), lastMs: startMs + 300, refunds: 0 })
  for (const [i, limit] of LIMITS.entries()) {
    for (let key = 0; key < KEYS; key++) {
      const column = i * KEYS + key
      const most = mostIn(tally.byTick.subarray(column * tally.ticks, (column + 1) * tally.ticks), 20)
      assert.ok(most > 0 && most <= limit, `${most} of ${limit} by ${NAMES[i]} ${key}`)
    }
  }
})

test.run()
