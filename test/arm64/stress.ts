// `node build/test/arm64/stress.js --minutes 10`: worker threads decide on one limiter with granules of a
// millisecond, judged as in test/engines/threads.test.ts, for the given time. It is for other machines, real
// or emulated: no check depends on their speed.
import { parseArgs } from 'node:util'
import { attachLimiter, createLimiter, type Limiter, manualClock } from 'millrace'
import { monotonicClock } from '#millrace/core/clock.js'
import { run, Tally, type Task } from '../engines/thread-group.js'

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '10' }, threads: { type: 'string', default: '3' } },
})
const minutes = Number(values.minutes)
const threads = Number(values.threads)
if (!(minutes > 0) || !(Number.isInteger(threads) && threads >= 2)) {
  console.error('error: --minutes must be a number above 0, --threads an integer of 2 or more')
  process.exit(2)
}

/** The length of the log in milliseconds: longer than every run of one task. */
const TICKS = 600_000
const LIMIT = 50
const WINDOW = 20
const ROLLING = { limit: LIMIT, window: WINDOW, granularity: 1 }

let decisions = 0
let runs = 0
let windows = 0
const wrong: string[] = []
const ROUNDS: readonly (() => Promise<void>)[] = [rolling, adjusting, meeting, churning, returning]
const endMs = performance.now() + minutes * 60_000
while (performance.now() < endMs) {
  await ROUNDS[runs++ % ROUNDS.length]!()
  const left = Math.max(0, (endMs - performance.now()) / 60_000).toFixed(1)
  process.stderr.write(
    `run ${runs}: ${grouped(decisions)} decisions, ${wrong.length} wrong, ${left} minutes left\n`,
  )
}
for (const text of wrong) console.log(`wrong: ${text}`)
console.log(
  `${wrong.length === 0 ? 'Held' : `BROKEN (${wrong.length})`}: ${minutes} minutes on ${process.arch}, ` +
    `Node ${process.version}; ${grouped(decisions)} decisions by ${threads} threads in ${runs} runs, ` +
    `${grouped(windows)} windows of ${WINDOW} ms`,
)
process.exitCode = wrong.length === 0 ? 0 : 1

/** Decides on one key at full speed. */
async function rolling(): Promise<void> {
  const limiter = createLimiter({ ...ROLLING, maxKeys: 100 })
  const tally = await judgedByTick(limiter, { name: 'roll', keys: 1, rounds: 40_000, cost: 3 })
  const logged = tally.byTick.reduce((sum, count) => sum + count, 0)
  expect(logged === tally.admitted[0], `roll: ${logged} in the log, ${tally.admitted[0]} admitted`)
}

/** Decides on one key during refunds, blocks and changes of the limit. */
async function adjusting(): Promise<void> {
  const limiter = createLimiter({ ...ROLLING, maxKeys: 2_000 })
  await judgedByTick(limiter, { name: 'adjust', keys: 1, rounds: 40_000, cost: 1 })
  limiter.update('default', { limit: LIMIT })
  const later = attachLimiter(limiter.share(), { clock: { now: () => monotonicClock.now() + 1_000 } })
  const { remaining } = later.peek('key 0')
  expect(remaining === LIMIT, `adjust: ${remaining} left of ${LIMIT} when all has expired`)
}

async function judgedByTick(limiter: Limiter, task: Task): Promise<Tally> {
  const firstTick = Math.floor(monotonicClock.now())
  const tally = new Tally(1, TICKS)
  await perform(limiter, task, tally, firstTick)
  windows += Math.floor((monotonicClock.now() - firstTick) / WINDOW)
  const most = tally.mostIn(WINDOW + 1)
  expect(most <= LIMIT, `${task.name}: ${most} in a window, limit ${LIMIT}`)
  expect(most > LIMIT / 2, `${task.name}: at most ${most} in a window, far below the limit of ${LIMIT}`)
  return tally
}

/** All threads insert each new key at the same time. */
async function meeting(): Promise<void> {
  const keys = 4_000
  const limiter = createLimiter({
    limit: 3,
    window: '1m',
    granularity: '10s',
    maxKeys: keys,
    clock: manualClock(1e6),
  })
  const tally = new Tally(keys, 1)
  await perform(limiter, { name: 'admit', keys, rounds: 4, cost: 1 }, tally)
  const off = tally.admitted.filter((admitted) => admitted !== 3).length
  const { keys: live, lostWays, noRoom, evictedLive } = limiter.stats()
  expect(off === 0, `admit: ${off} keys were not admitted exactly 3 times`)
  expect(live === keys, `admit: ${live} cells of ${keys} keys`)
  expect(lostWays + noRoom + evictedLive === 0, `admit: ${lostWays}, ${noRoom}, ${evictedLive}`)
}

/** Uses a table too small for its keys, so that ways change keys all the time. */
async function churning(): Promise<void> {
  const limiter = createLimiter({ limit: 5, window: WINDOW, granularity: 1, maxKeys: 100 })
  const tally = new Tally(400, 1)
  await perform(limiter, { name: 'churn', keys: 400, rounds: 60, cost: 1 }, tally)
  const admitted = tally.admitted.reduce((sum, count) => sum + count, 0)
  const { allowed, lostWays } = limiter.stats()
  expect(allowed === admitted, `churn: ${allowed} admitted by the statistics, ${admitted} by the log`)
  expect(lostWays === 0, `churn: ${lostWays} ways lost`)
}

async function returning(): Promise<void> {
  const limiter = createLimiter({ limit: 20, window: '1m', maxKeys: 100, clock: manualClock(1e6) })
  const tally = new Tally(1, 1)
  await perform(limiter, { name: 'refund', keys: 1, rounds: 20_000, cost: 1 }, tally)
  const standing = tally.admitted[0]!
  const usage = limiter.usage('key 0')
  expect(standing <= 20, `returns: ${standing} admitted and not returned, limit 20`)
  expect(usage >= standing, `returns: ${usage} counted of ${standing}`)
}

async function perform(limiter: Limiter, task: Task, tally: Tally, firstTick = 0): Promise<void> {
  await run(
    limiter,
    Array.from({ length: threads }, () => task),
    tally,
    firstTick,
  )
  const { allowed, denied } = limiter.stats()
  decisions += allowed + denied
}

function expect(holds: boolean, text: string): void {
  if (!holds) wrong.push(`run ${runs}, ${text}`)
}

function grouped(count: number): string {
  return count.toLocaleString('en-US')
}
