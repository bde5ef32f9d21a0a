// Worker threads that decide on one limiter while its rules change: the main thread's side, which judges.
import { Worker } from 'node:worker_threads'
import { attachLimiter, createLimiter, type Limiter, type RulesLimiterOptions } from 'millrace'
import { monotonicClock } from '#millrace/core/clock.js'
import { HEADER, MOST_RECORDS } from '#millrace/memory/layout.js'
import { readRecord } from '#millrace/memory/records.js'
import type { Admission, Had } from '../../judge/changes-judge.js'
import { wishFor } from '../../native/sides.js'
import { Board } from './board.js'
import { type Findings, hadBy, judgeRule, noFindings } from './findings.js'
import { addCounts, type Change, FIELDS, type Job, type Round, type RoundLog } from './job.js'
import { keyOf } from './keys.js'
import { nameOf, type Planned, plansFor } from './plan.js'
import type { Shape } from './shapes.js'

export interface Run {
  readonly threads: number
  readonly rounds: number
  readonly seed: number
}

const THREAD = new URL('./thread.js', import.meta.url)
/** Keys of which each is asked for its whole limit at rest. */
const KEYS_AT_REST = 16

/** Runs one shape, each round on a limiter of its own. @throws Error if a thread fails */
export async function runShape(
  shape: Shape,
  { threads, rounds, seed }: Run,
  onProgress: (rounds: number) => void,
): Promise<Findings> {
  const found = noFindings()
  const board = Board.allocate(threads)
  const workers = Array.from({ length: threads }, (_, thread) => {
    const workerData: Job = { shape, thread, threads, board }
    // Wherever the addon decides, one thread decides without it.
    const isLast = thread === threads - 1
    const env = isLast ? { ...process.env, MILLRACE_NATIVE: wishFor('typescript') } : process.env
    return new Worker(THREAD, { workerData, env })
  })
  try {
    for (let index = 0; index < rounds; index++) {
      const own = seed * rounds + index
      const plans = plansFor(shape, own)
      const limiter = createLimiter(optionsFor(shape, plans))
      const round: Round = { index, shared: limiter.share(), seed: own }
      const logs = await Promise.all(workers.map((worker) => askFor(worker, round)))
      for (const { counts } of logs) addCounts(found, counts)
      judge(shape, plans, limiter, logs, found)
      onProgress(index + 1)
    }
    for (const worker of workers) worker.postMessage('end')
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()))
  }
  return found
}

function askFor(worker: Worker, round: Round): Promise<RoundLog> {
  return new Promise((resolve, reject) => {
    const settle = () => worker.off('error', reject).off('message', answer).off('exit', end)
    const answer = (log: RoundLog) => {
      settle()
      resolve(log)
    }
    const end = (code: number) => reject(new Error(`a thread exited with ${code}`))
    worker.once('message', answer).once('error', reject).once('exit', end)
    worker.postMessage(round)
  })
}

function optionsFor({ options }: Shape, plans: readonly Planned[][]): RulesLimiterOptions {
  const rules = plans.map(([first], rule) => {
    const { windowMs, buckets, limit } = first!
    const { edge, rangeSum } = options
    const own = { name: nameOf(rule), limit, window: windowMs, granularity: windowMs / buckets }
    return { ...own, ...(edge && { edge }), ...(rangeSum && { rangeSum }) }
  })
  const { maxKeys, onFull } = options
  const table = { ...(maxKeys && { maxKeys }), ...(onFull && { onFull }) }
  return { rules, ...table }
}

/** Judges a round: every window, what is counted at its end, and the limits at rest. */
function judge(
  shape: Shape,
  plans: readonly Planned[][],
  limiter: Limiter,
  logs: readonly RoundLog[],
  found: Findings,
): void {
  const { keys } = shape
  const complain = (complaint: string) => found.complaints.push(complaint)
  const columnOf = (rule: number, key: number) => rule * keys + key
  const changes = logs.flatMap((log) => log.changes)
  found.changes += changes.length
  const hads = plans.map((plan, rule) => {
    const own = changes.filter((change) => change.rule === rule)
    return hadBy(plan, shape.changers === 1 ? own : inOrder(limiter, own))
  })
  for (const [rule, had] of hads.entries()) {
    const records = new Map(had.map(({ windowMs }, record) => [windowMs, record]))
    const admissions = logs.flatMap((log) => [...admissionsOf(log, rule, columnOf, records)])
    const judged = judgeRule(had, limiter.rule.edge, keys * plans.length, admissions, found)
    for (let key = 0; key < keys; key++) {
      const used = limiter.usage(keyOf(key), undefined, { rule: nameOf(rule) })
      const least = judged.usedAtLeast(columnOf(rule, key), had.length - 1, monotonicClock.now())
      if (used < least) complain(`${keyOf(key)} has used ${used} by ${nameOf(rule)}, at least ${least} count`)
    }
  }
  judgeAtRest(limiter, hads, complain)
}

/** A window later, every key has its whole limit. */
function judgeAtRest(
  limiter: Limiter,
  hads: readonly (readonly Had[])[],
  complain: (complaint: string) => void,
): void {
  const longestMs = Math.max(...hads.flat().map(({ windowMs }) => windowMs))
  const restedMs = monotonicClock.now() + 3 * longestMs
  const rested = attachLimiter(limiter.share(), { clock: { now: () => restedMs } })
  const limit = Math.min(...rested.rules.map((rule) => rule.limit))
  for (let key = 0; key < KEYS_AT_REST; key++) {
    if (!rested.check(keyOf(key), limit).allowed) complain(`${keyOf(key)} is refused at rest`)
    if (rested.check(keyOf(key)).allowed) complain(`${keyOf(key)} is over its limit at rest`)
  }
}

function* admissionsOf(
  { admissions }: RoundLog,
  ownRule: number,
  columnOf: (rule: number, key: number) => number,
  records: ReadonlyMap<number, number>,
): Generator<Admission> {
  for (let at = 0; at < admissions.length; at += FIELDS) {
    const [rule, key, units, fromMs, first, last, windowMs] = admissions.subarray(at, at + FIELDS)
    if (rule !== ownRule) continue
    const record = records.get(windowMs!)!
    yield { column: columnOf(rule, key!), units: units!, fromMs: fromMs!, first: first!, last: last!, record }
  }
}

/** The changes of two threads in the order of their records. Of a record that was tried again, the last one counts. */
function inOrder(limiter: Limiter, changes: readonly Change[]): Change[] {
  const words = new Int32Array(limiter.share().buffer)
  const records = new Map<number, number>()
  const used = Math.min(words[HEADER.RECORDS_USED]!, MOST_RECORDS)
  for (let record = 0; record < used; record++) records.set(readRecord(words, record)!.windowMs, record)
  return changes.toSorted((a, b) => records.get(a.windowMs)! - records.get(b.windowMs)!)
}
