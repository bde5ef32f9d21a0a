import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { inCommas, type Progress } from '../../long-runs/progress.js'
import { LIBRARIES } from '../../redis/clients.js'
import { startRedis } from '../../redis/servers.js'
import { sendOnce } from '../../redis/wire.js'
import { type Job, KEYS, PROCESSES, RULES } from './job.js'
import { type Judged, judge } from './judge.js'
import { type Admission, readLog } from './log.js'
import { Running } from './running.js'

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
  const processes: Running[] = []
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
    processes.push(...jobs.map((job) => new Running(job)))
    const endMs = performance.now() + 1_000 * seconds
    const isNotYet = () => performance.now() < endMs || processes.some(({ isFull }) => !isFull)
    while (isNotYet() && processes.every(({ hasEnded }) => !hasEnded)) {
      await pause(FLUSH_EVERY_MS)
      await sendOnce(server.port, 'SCRIPT', 'FLUSH')
      found.scriptFlushes++
      progress.at(`${Math.ceil((endMs - performance.now()) / 1_000)} s to go`)
    }
    await Promise.all(processes.map((each) => each.stop()))
    for (const { counts } of processes) {
      if (counts === undefined) found.complaints.push('a process ended without a report')
      found.decisions += counts?.decisions ?? 0
      found.outages += counts?.outages ?? 0
    }
    const admissions = jobs.flatMap(({ file }) => readLog(file))
    for (const index of RULES.keys()) found.limits.push(judgeRule(index, admissions))
    found.complaints.push(...found.limits.flatMap(({ complaints }) => complaints))
  } finally {
    for (const each of processes) each.kill()
    await server.stop()
    rmSync(folder, { recursive: true })
  }
  return found
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
