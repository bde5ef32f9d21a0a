// Checks of the package for every runtime. scripts/test-runtimes.mjs runs it in a project with the package
// installed. RUNTIMES has the command of each runtime, this one first.
import * as assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import * as imported from 'millrace'
import { monotonicClock } from 'millrace/internal'
import { delaysAreBounded, servers } from './delays.mjs'
import { pageLimits } from './pages.mjs'

const { createLimiter, manualClock } = imported
const { command, others, closesPools } = JSON.parse(process.env.RUNTIMES)
const hasAddon = process.env.MILLRACE_NATIVE !== '0'
const APART_MS = 5
const clock = manualClock(1_000)
const limiter = createLimiter({ limit: 3, window: '1m', clock })
const used = createLimiter({ limit: 2, window: '1h' })

/** Starts a worker on the limiter and returns what it found. */
async function workerOn(shared, env = process.env) {
  const worker = new Worker(new URL('./worker.mjs', import.meta.url), { workerData: shared, env })
  const found = await new Promise((resolve, reject) => {
    worker.once('message', resolve).once('error', reject)
  })
  await worker.terminate()
  return found
}

/** Checks that a reading taken between two of ours is of our clock. */
function assertBetween(beforeMs, there, afterMs) {
  const isBetween = beforeMs - APART_MS <= there && there <= afterMs + APART_MS
  assert.ok(isBetween, `read ${there} between ${beforeMs} and ${afterMs}`)
}

const parts = {
  async 'a missing peer'() {
    const missing = { code: 'ERR_MILLRACE_MISSING_PEER', option: 'lmdb', message: /npm install lmdb/ }
    await assert.rejects(import('millrace/config/lmdb'), missing)
    assert.throws(() => createRequire(import.meta.url)('millrace/config/lmdb'), missing)
  },
  require() {
    assert.equal(createRequire(import.meta.url)('millrace').createLimiter, createLimiter)
  },
  check() {
    const allowed = [1, 2, 3, 4].map(() => limiter.check('alice').allowed)
    assert.deepEqual(allowed, [true, true, true, false])
  },
  batches() {
    assert.deepEqual([...limiter.checkMany(['alice', 'bob', 'bob']).allowed], [0, 1, 1])
  },
  async wait() {
    const waiting = limiter.wait('alice')
    clock.advance(61_000)
    assert.ok((await waiting).allowed)
  },
  'the default clock, for one rule and several, for single keys and batches, for each algorithm'() {
    const algorithms = ['sliding-window', 'sliding-counter', 'sliding-log', 'fixed-window', 'token-bucket']
    for (const algorithm of algorithms) {
      const rule = { limit: 20, window: '1h', algorithm }
      const two = {
        rules: [
          { ...rule, name: 'first' },
          { ...rule, name: 'second', limit: 30 },
        ],
      }
      for (const options of [rule, two]) {
        const one = createLimiter(options)
        const admitted = Array.from({ length: 30 }, () => one.check('a').allowed).filter(Boolean).length
        assert.equal(admitted, 20, `${algorithm}, one by one`)
        const batch = one.checkMany(Array(150).fill('b')).allowed.reduce((sum, allowed) => sum + allowed, 0)
        assert.equal(batch, 20, `${algorithm}, a batch`)
        one.check('a')
        assert.equal(one.checkMany(Array(20).fill('a')).allowed.indexOf(1), -1, `${algorithm}, both`)
      }
    }
    assert.deepEqual(
      [1, 2, 3].map(() => used.check('key').allowed),
      [true, true, false],
    )
  },
  'a window of real time'() {
    const short = createLimiter({ limit: 2, window: '300ms' })
    const startedMs = monotonicClock.now()
    let admitted = 0
    while (monotonicClock.now() - startedMs < 1_000) if (short.check('key').allowed) admitted++
    const windows = (monotonicClock.now() - startedMs) / 300
    assert.ok(admitted > 2 && admitted <= 2 * Math.ceil(windows), `${admitted} in ${windows} windows of 2`)
  },
  async 'attach in a worker'() {
    const { allowed } = await workerOn(limiter.share())
    assert.ok(allowed)
    assert.equal(limiter.peek('carol').remaining, 2)
  },
  async 'a worker that starts later has the same clock'() {
    const shared = used.share()
    const beforeMs = monotonicClock.now()
    const { ms, isKeyAllowed, allowed } = await workerOn(shared)
    assertBetween(beforeMs, ms, monotonicClock.now())
    assert.deepEqual([isKeyAllowed, allowed], [false, true])
  },
  async 'a worker without the addon has the same clock, or is refused'() {
    const beforeMs = monotonicClock.now()
    const { code, ms } = await workerOn(used.share(), { ...process.env, MILLRACE_NATIVE: '0' })
    if (code === undefined) assertBetween(beforeMs, ms, monotonicClock.now())
    else assert.equal(code, 'ERR_MILLRACE_CLOCKS_DIFFER')
  },
  'processes of every runtime share a file'() {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-file-'))
    const options = { limit: 10, window: '1h', shared: { file: join(folder, 'counts') } }
    try {
      if (!hasAddon) return assert.throws(() => createLimiter(options), { code: 'ERR_MILLRACE_NO_ADDON' })
      const mine = createLimiter(options)
      mine.check('key', 3)
      for (const [i, [program, ...args]] of [command, ...others].entries()) {
        const beforeMs = monotonicClock.now()
        const member = fileURLToPath(new URL('./member.mjs', import.meta.url))
        const { stdout, stderr } = spawnSync(program, [...args, member, JSON.stringify(options), `${i}`], {
          encoding: 'utf8',
        })
        const { ms, admitted } = JSON.parse(stdout || `"${stderr}"`)
        assertBetween(beforeMs, ms, monotonicClock.now())
        assert.equal(admitted, [7, 0, 0][i], program)
      }
      assert.ok(!mine.check('key').allowed)
      assert.equal(mine.usage('key'), 10)
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
  async 'requests that wait, of which too many are refused, and dropped if the client hangs up'() {
    for (const start of Object.values(servers)) await delaysAreBounded(start)
  },
  async 'the program of the page for this runtime'() {
    if (globalThis.Bun || globalThis.Deno) await pageLimits()
  },
  async pool() {
    const pool = createLimiter({ limit: 1, window: '1m', engine: 'pool', pool: { maxThreads: 1 } })
    assert.ok((await pool.check('alice')).allowed)
    assert.deepEqual([...(await pool.checkMany(['alice', 'bob'])).allowed], [0, 1])
    if (closesPools) await pool.close()
  },
}

// A pending `wait` does not keep the process alive, as a server does.
setInterval(() => {}, 60_000)
for (const [name, run] of Object.entries(parts)) {
  await run()
  console.log(name)
}
process.exit(0)
