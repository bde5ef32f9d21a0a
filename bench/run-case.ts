import type { Effort } from './benchmark.js'
import { ALL_CASES, type CaseName } from './cases/index.js'
import type { Progress } from './progress.js'
import { type CaseReport, reportCase, reportSkipped } from './report.js'
import { measureRounds } from './rounds.js'

/** Measures a case, or reports why this machine cannot. @throws ContenderError */
export async function runCase(name: CaseName, effort: Effort, progress: Progress): Promise<CaseReport> {
  const benchmark = await ALL_CASES[name]()
  const reason = benchmark.unavailable?.()
  if (reason !== undefined) return reportSkipped(name, benchmark, reason)
  const startMs = performance.now()
  const rounds = await measureRounds(name, benchmark, effort, progress)
  progress.done()
  return reportCase(name, benchmark, rounds, performance.now() - startMs)
}
