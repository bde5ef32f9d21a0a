import { setTimeout as sleep } from 'node:timers/promises'
import type { Server } from '../../test/redis/process.js'
import { redisVersion } from '../../test/redis/programs.js'
import { startRedis } from '../../test/redis/servers.js'
import { judge, type ProcessLog, type RunKind, type RunResult } from './judge.js'
import { Nodes } from './nodes.js'

export interface DemoOptions {
  /** Of all three runs together. */
  readonly seconds: number
  /** Of all processes together. */
  readonly requestsPerSecond: number
  readonly limit: number
}

export interface DemoResult {
  readonly redis: { readonly name: string; readonly version: string; readonly port: number }
  readonly processes: number
  readonly requestsPerSecond: number
  readonly limit: number
  readonly windowMs: number
  readonly runs: readonly RunResult[]
  readonly held: boolean
}

export type OnProgress = (kind: RunKind, secondsLeft: number) => void

/** How busy each process is, in parts of all requests. An outage shows most if some are busier than others. */
export const LOADS = [4, 2, 1, 1] as const
const PARTS = LOADS.reduce((sum, load) => sum + load, 0)
export const WINDOW_MS = 1_000
/** Longer than any call, so that one time of Redis is between request and reply. */
const GRANULARITY_MS = 100
const PROGRESS_MS = 200
/** Parts of the whole: a run with Redis answering, then before, during and after each stop. */
const ANSWERING = 2 / 12
const OUTAGE = { before: 1.5 / 12, stopped: 2 / 12, after: 1.5 / 12 }

/** Runs four processes on a Redis of their own: with Redis answering, then with it stopped for a while, twice. */
export async function runDemo(options: DemoOptions, onProgress: OnProgress): Promise<DemoResult> {
  const server = await startRedis()
  try {
    const runs: RunResult[] = []
    for (const kind of ['answering', 'closed', 'local'] as const)
      runs.push(await run(server, kind, options, onProgress))
    return {
      redis: { ...redisVersion(), port: server.port },
      processes: LOADS.length,
      requestsPerSecond: options.requestsPerSecond,
      limit: options.limit,
      windowMs: WINDOW_MS,
      runs,
      held: runs.every(({ held }) => held),
    }
  } finally {
    await server.stop()
  }
}

async function run(
  server: Server,
  kind: RunKind,
  { seconds, requestsPerSecond, limit }: DemoOptions,
  onProgress: OnProgress,
): Promise<RunResult> {
  const tasks = LOADS.map((load) => ({
    port: server.port,
    prefix: kind,
    limit,
    windowMs: WINDOW_MS,
    granularityMs: GRANULARITY_MS,
    onOutage: kind === 'local' ? ('local' as const) : ('closed' as const),
    nodes: LOADS.length,
    requestsPerSecond: (load * requestsPerSecond) / PARTS,
  }))
  const partMs = (part: number) => 1_000 * seconds * part
  const { before, stopped, after } = OUTAGE
  const totalMs = partMs(kind === 'answering' ? ANSWERING : before + stopped + after)
  const nodes = await Nodes.start(tasks)
  const startMs = Date.now()
  const progress = setInterval(
    () => onProgress(kind, Math.max(0, (startMs + totalMs - Date.now()) / 1_000)),
    PROGRESS_MS,
  )
  try {
    nodes.load()
    if (kind === 'answering') {
      await sleep(totalMs)
      const endMs = Date.now()
      return judge({ kind, limit, windowMs: WINDOW_MS, startMs, endMs, processes: await nodes.stop() })
    }
    await sleep(partMs(before))
    await server.pause()
    const fromMs = Date.now()
    await sleep(partMs(stopped))
    server.resume()
    const toMs = Date.now()
    const [backAfterMs] = await Promise.all([nodes.back(), sleep(partMs(after))])
    const endMs = Date.now()
    const logs = await nodes.stop()
    const processes = logs.map((log, i): ProcessLog => ({ ...log, backAfterMs: backAfterMs[i]! }))
    return judge({
      kind,
      limit,
      windowMs: WINDOW_MS,
      startMs,
      endMs,
      stopped: { fromMs, toMs },
      processes,
    })
  } finally {
    clearInterval(progress)
    nodes.end()
  }
}
