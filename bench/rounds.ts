import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Benchmark, type Effort, type Figures, type Round, roundsOf } from './benchmark.js'
import type { CaseName } from './cases/index.js'
import type { Progress } from './progress.js'
import { isDecided } from './verdict.js'

const RUN_ONE = fileURLToPath(new URL('./run-one.js', import.meta.url))

/** The process of a contender ended without reporting figures. */
export class ContenderError extends Error {
  constructor(caseName: CaseName, contenderName: string, end: string) {
    super(`case '${caseName}', '${contenderName}': the process ended with ${end}`)
  }
}

/**
 * Measures every contender once per round (A B C, A B C, ...), so that changes of the machine's speed affect
 * all alike. It ends before the last round if no verdict can change any more.
 */
export async function measureRounds(
  name: CaseName,
  benchmark: Benchmark,
  effort: Effort,
  progress: Progress,
): Promise<Round[]> {
  const count = roundsOf(benchmark, effort)
  const rounds: Round[] = []
  for (let i = 1; i <= count; i++) {
    const round: Record<string, Figures> = {}
    for (const contender of benchmark.contenders) {
      progress.at(name, i, count, contender.name)
      round[contender.name] = await measureInProcess(name, contender.name, effort)
    }
    rounds.push(round)
    if (isDecided(benchmark.goals, rounds, count)) break
  }
  return rounds
}

/** Measures in a fresh process, so that V8's optimizations for one contender do not affect the next. */
function measureInProcess(caseName: CaseName, contenderName: string, effort: Effort): Promise<Figures> {
  return new Promise((resolve, reject) => {
    const child = fork(RUN_ONE, [caseName, contenderName, JSON.stringify(effort)], {
      execArgv: ['--expose-gc'],
      stdio: ['ignore', 2, 2, 'ipc'], // stdout is for the report
    })
    let figures: Figures | undefined
    child.once('message', (message) => {
      figures = message as Figures
    })
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      if (figures) resolve(figures)
      else reject(new ContenderError(caseName, contenderName, signal ?? `exit code ${code}`))
    })
  })
}
