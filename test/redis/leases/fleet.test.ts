// run: full, also-long, typescript
// Processes that ask for one key, with leases and without, while some of them are killed, or stand still for longer than
// their leases: no window has more than the limit.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { isLong, sized } from '../../size.js'
import { poll } from '../poll.js'
import { startRedis } from '../servers.js'
import { redisTest as test } from '../skip.js'
import { sendOnce } from '../wire.js'
import { type Admission, fullestWindow, LIMIT, WINDOW_MS } from './fleet.js'

const WORKER = fileURLToPath(new URL('fleet-worker.js', import.meta.url))
const RUN_MS = isLong ? 600_000 : sized({ quick: 5_000, full: 8_000 })
const NODES = 8

test('no window is over while processes die, stand still, and forget their scripts', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-fleet-'))
  const server = await startRedis()
  const files: string[] = []
  const alive: ChildProcess[] = []
  const harms = { killed: 0, stopped: 0, flushed: 0 }
  const start = (i: number) => {
    const file = join(folder, `${files.length}`)
    files.push(file)
    const mode = i === 0 ? 'strict' : 'leased'
    const args = [WORKER, String(server.port), mode, file, i < 4 ? '2' : '8']
    alive[i] = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  }
  try {
    for (let i = 0; i < NODES; i++) start(i)
    const isWarm = (file: string) => existsSync(file) && statSync(file).size > 0
    await poll(async () => files.every(isWarm), 'the first admission of each process')
    const end = performance.now() + RUN_MS
    for (let round = 0; performance.now() < end; round++) {
      await pause(200 + (round % 5) * 90)
      const i = 1 + (round % (NODES - 1))
      if (round % 3 === 0) {
        alive[i]!.kill('SIGKILL')
        start(i)
        harms.killed++
      } else if (round % 3 === 1) {
        alive[i]!.kill('SIGSTOP')
        const stopped = alive[i]!
        setTimeout(() => stopped.kill('SIGCONT'), 300 + (round % 7) * 200)
        harms.stopped++
      } else if (round % 6 === 2) {
        await sendOnce(server.port, 'SCRIPT', 'FLUSH')
        harms.flushed++
      }
    }
  } finally {
    const ended = alive.map((child) => {
      child.kill('SIGCONT')
      child.kill('SIGKILL')
      return child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined
    })
    await Promise.all(ended)
    await server.stop()
  }
  const admissions = files.filter((file) => existsSync(file)).flatMap(read)
  rmSync(folder, { recursive: true })
  const leased = admissions.filter(({ source }) => source === 'lease').length
  const fullest = fullestWindow(admissions, WINDOW_MS)
  const [first, last] = [
    Math.min(...admissions.map(({ from }) => from)),
    Math.max(...admissions.map(({ to }) => to)),
  ]
  const share = admissions.length / ((last - first) / WINDOW_MS) / LIMIT
  console.log(
    `note: fullest window ${fullest} of ${LIMIT}; ${admissions.length} admissions, ${leased} of them by leases, ` +
      `${(100 * share).toFixed(0)} % of the limit; ${JSON.stringify(harms)}`,
  )
  assert.ok(fullest <= LIMIT, `${fullest} of ${LIMIT}`)
  assert.ok(
    fullest > LIMIT / 2 && leased > admissions.length / 4,
    'the limit was asked for, and leases were spent',
  )
})

function read(file: string): Admission[] {
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => {
    const [from, to, source] = line.split(' ') as [string, string, string]
    return { from: Number(from), to: Number(to), source }
  })
}

test.run()
