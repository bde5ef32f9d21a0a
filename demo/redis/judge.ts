// What the logs of all processes say about the limit.
import { Admissions } from 'millrace-cli/dist/demo/admissions.js'
import type { NodeLog } from './messages.js'

/** What a run is: Redis answers, or it stops and `onOutage` decides. */
export type RunKind = 'answering' | 'closed' | 'local'

export interface RunLog {
  readonly kind: RunKind
  readonly limit: number
  readonly windowMs: number
  /** Since 1970. */
  readonly startMs: number
  readonly endMs: number
  /** When Redis was stopped, since 1970. */
  readonly stopped?: { readonly fromMs: number; readonly toMs: number }
  readonly processes: readonly ProcessLog[]
}

export interface ProcessLog extends NodeLog {
  /** How long after the stop Redis decided again. */
  readonly backAfterMs?: number
}

/** What one process has done. */
export interface ProcessResult {
  readonly requests: number
  readonly byRedis: number
  readonly byShare: number
  readonly overLimit: number
  readonly withoutAnswer: number
  /** The most that it admitted by its share in any window. */
  readonly mostByShare: number
  readonly backAfterMs?: number
}

export interface RunResult {
  readonly kind: RunKind
  readonly limit: number
  readonly windowMs: number
  readonly durationMs: number
  /** Since the start. */
  readonly stopped?: { readonly fromMs: number; readonly toMs: number }
  /** Each process's share of the limit. */
  readonly share: number
  readonly processes: readonly ProcessResult[]
  /** The most that all processes together have admitted in any window. */
  readonly mostInAnyWindow: number
  /** The most that is promised. */
  readonly promised: number
  /** Admissions by Redis at a time that is not between request and reply. */
  readonly contradictions: number
  readonly held: boolean
  /** Admitted in the window that ends at each step, by all and by their shares. */
  readonly history: {
    readonly stepMs: number
    readonly used: readonly number[]
    readonly byShare: readonly number[]
  }
}

const STEP_MS = 50
/** A log has the time of a process's own decision a little late. */
const LATE_MS = 10

export function judge({ kind, limit, windowMs, startMs, endMs, stopped, processes }: RunLog): RunResult {
  // Redis's times are whole milliseconds, which may hide nearly one: no window that is missed is fuller.
  const all = new Admissions(windowMs + 1)
  const shares = new Admissions(windowMs)
  for (const { byRedisMs, byShareMs } of processes) {
    for (const atMs of [byRedisMs, byShareMs]) add(all, atMs)
    add(shares, byShareMs)
  }
  const share = Math.floor(limit / processes.length)
  const promised = kind === 'local' ? 2 * limit - 1 : limit
  const mostInAnyWindow = all.peakOf(0)
  const contradictions = processes.reduce((sum, each) => sum + each.contradictions, 0)
  const results = processes.map((log) => resultOf(log, windowMs))
  const areSharesKept = results.every(({ mostByShare }) => mostByShare <= share)
  const steps = Array.from({ length: Math.floor((endMs - startMs) / STEP_MS) }, (_, i) => (i + 1) * STEP_MS)
  const timesMs = steps.map((ms) => startMs + ms)
  return {
    kind,
    limit,
    windowMs,
    durationMs: endMs - startMs,
    ...(stopped && { stopped: { fromMs: stopped.fromMs - startMs, toMs: stopped.toMs - startMs } }),
    share,
    processes: results,
    mostInAnyWindow,
    promised,
    contradictions,
    held: mostInAnyWindow <= promised && areSharesKept && contradictions === 0,
    history: { stepMs: STEP_MS, used: all.usedAt(0, timesMs), byShare: shares.usedAt(0, timesMs) },
  }
}

function resultOf(log: ProcessLog, windowMs: number): ProcessResult {
  const { requests, overLimit, withoutAnswer, byRedisMs, byShareMs, backAfterMs } = log
  const alone = new Admissions(windowMs - LATE_MS)
  add(alone, byShareMs)
  return {
    requests,
    byRedis: byRedisMs.length,
    byShare: byShareMs.length,
    overLimit,
    withoutAnswer,
    mostByShare: alone.peakOf(0),
    ...(backAfterMs !== undefined && { backAfterMs }),
  }
}

/** All have one key, client 0 of the log. */
function add(admissions: Admissions, atMs: Float64Array): void {
  admissions.add({ clients: new Int32Array(atMs.length), atMs })
}
