import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { inCommas, type Progress } from '../../long-runs/progress.js'
import { LIBRARIES } from '../../redis/clients.js'
import { startRedis } from '../../redis/servers.js'
import { sendOnce } from '../../redis/wire.js'
import { type Counts, type Job, KEYS, PROCESSES, RULES } from './job.js'
import { type Judged, judge } from './judge.js'
import { type Admission, readLog } from './log.js'

const DECIDER = fileURLToPath(new URL('./decider.js', import.meta.url))
/** The server forgets its scripts as often as that. */
const FLUSH_EVERY_MS = 1_000

export interface OfLimit extends Judged {
  readonly limit: number
  readonly windowMs: number
  readonly units: number
}

export interface Findings {
  decisions: number
  /** Decisions without Redis, because no reply came in time. */
  outages: number
  scriptFlushes: number
  readonly limits: OfLimit[]
  readonly complaints: string[]
}

/** Lets processes use up several limits on one server in real time, then judges all windows of their admissions. */
export async function runStress(seconds: number, seed: number, progress: Progress): Promise<Findings> {
  const server = await startRedis()
  const folder = mkdtempSync(join(tmpdir(), 'millrace-redis-'))
  const found: Findings = { decisions: 0, outages: 0, scriptFlushes: 0, limits: [], complaints: [] }
  const processes: Process[] = []
  try {
    const jobs = Array.from(
      { length: PROCESSES },
      (_, i): Job => ({
        port: server.port,
        library: LIBRARIES[i % LIBRARIES.length]!,
        seed: 1_000 * seed + i,
        file: join(folder, `${i}`),
      }),
    )
    processes.push(...jobs.map(start))
    const endMs = performance.now() + 1_000 * seconds
    const full = Promise.all(processes.map((each) => each.full))
    while (performance.now() < endMs) {
      await pause(Math.min(FLUSH_EVERY_MS, Math.max(0, endMs - performance.now())))
      await sendOnce(server.port, 'SCRIPT', 'FLUSH')
      found.scriptFlushes++
      progress.at(`${Math.ceil((endMs - performance.now()) / 1_000)} s to go`)
    }
    await full
    for (const { stop } of processes) stop()
    for (const { counts } of processes) {
      const { decisions, outages } = await counts
      found.decisions += decisions
      found.outages += outages
    }
    const admissions = jobs.flatMap(({ file }) => readLog(file))
    for (const index of RULES.keys()) found.limits.push(judgeRule(index, admissions))
    found.complaints.push(...found.limits.flatMap(({ complaints }) => complaints))
  } finally {
    for (const { kill } of processes) kill()
    await server.stop()
    rmSync(folder, { recursive: true })
  }
  return found
}

interface Process {
  kill(): void
  stop(): void
  /** Resolves when each rule has refused something. Rejects if the process ends before. */
  readonly full: Promise<unknown>
  readonly counts: Promise<Counts>
}

function start(job: Job): Process {
  const child = fork(DECIDER, [JSON.stringify(job)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`a process ended with ${code ?? signal}`)
  })
  const full = Promise.race([once(child, 'message'), ended])
  const counts = full.then(() => Promise.race([once(child, 'message').then(([message]) => message), ended]))
  ended.catch(() => {}) // after its report that is as it should be
  return { kill: () => child.kill(), stop: () => child.send('stop'), full, counts }
}

function judgeRule(index: number, admissions: readonly Admission[]): OfLimit {
  const rule = RULES[index]!
  const { limit, windowMs } = rule
  const own = admissions.filter((admission) => admission.rule === index)
  const all: OfLimit = {
    ...{ limit, windowMs, units: own.reduce((sum, { cost }) => sum + cost, 0) },
    ...{ windows: 0, over: 0, fullest: 0, certain: 0, complaints: [] },
  }
  for (let key = 0; key < KEYS; key++) {
    const judged = judge(
      rule,
      own.filter((admission) => admission.key === key),
    )
    all.windows += judged.windows
    all.over += judged.over
    all.fullest = Math.max(all.fullest, judged.fullest)
    all.certain = Math.max(all.certain, judged.certain)
    all.complaints.push(...judged.complaints)
  }
  return all
}

export function summaryOf({ decisions, outages, scriptFlushes, limits }: Findings): string {
  const lines = limits.map(
    ({ limit, windowMs, units, windows, over, fullest, certain }) =>
      `  limit ${inCommas(limit).padStart(6)} in ${windowMs} ms: ${inCommas(units)} units admitted, ` +
      `${inCommas(over)} of ${inCommas(windows)} windows over, fullest ${inCommas(fullest)} ` +
      `(${inCommas(certain)} by the processes' clock)`,
  )
  const head =
    `${inCommas(decisions)} decisions of ${PROCESSES} processes, ${inCommas(outages)} without a reply in time, ` +
    `${inCommas(scriptFlushes)} times all scripts forgotten`
  return [head, ...lines].join('\n')
}
