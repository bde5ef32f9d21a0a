import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Benchmark, type Effort, type Figures, ROUNDS, type Round } from './benchmark.js'
import type { CaseName } from './cases/index.js'
import type { Progress } from './progress.js'

const RUN_ONE = fileURLToPath(new URL('./run-one.js', import.meta.url))

/** A contender's process ended without figures. */
export class ContenderError extends Error {
  constructor(caseName: CaseName, contenderName: string, end: string) {
    super(`case '${caseName}', '${contenderName}': the process ended with ${end}`)
  }
}

/** Measures every contender once a round (A B C, A B C, ...), so that the machine's moods meet all of them alike. */
export async function measureRounds(
  name: CaseName,
  benchmark: Benchmark,
  effort: Effort,
  progress: Progress,
): Promise<Round[]> {
  const { full, quick } = benchmark.rounds ?? ROUNDS
  const count = effort.quick ? quick : full
  const rounds: Round[] = []
  for (let i = 1; i <= count; i++) {
    const round: Record<string, Figures> = {}
    for (const contender of benchmark.contenders) {
      progress.at(name, i, count, contender.name)
      round[contender.name] = await measureApart(name, contender.name, effort)
    }
    rounds.push(round)
  }
  return rounds
}

/** In a fresh process: what V8 learned from one contender must not help or hurt the next. */
function measureApart(caseName: CaseName, contenderName: string, effort: Effort): Promise<Figures> {
  return new Promise((resolve, reject) => {
    const child = fork(RUN_ONE, [caseName, contenderName, JSON.stringify(effort)], {
      execArgv: ['--expose-gc'],
      stdio: ['ignore', 2, 2, 'ipc'], // stdout is for the figures of all
    })
    let figures: Figures | undefined
    child.once('message', (answer) => {
      figures = answer as Figures
    })
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      if (figures) resolve(figures)
      else reject(new ContenderError(caseName, contenderName, signal ?? `exit code ${code}`))
    })
  })
}
