/**
 * `npm run bench`: every case, or those named with `--case`. The tables go to stdout, or with `--json` the figures;
 * progress goes to stderr. Ends with 0 whether targets are met or not (a busy machine fails no build), with 1 where a
 * contender failed, with 2 for arguments that are not understood.
 */
import { CommanderError } from 'commander'
import { type Arguments, parseArguments } from './arguments.js'
import { FULL_EFFORT, QUICK_EFFORT } from './benchmark.js'
import { CASES } from './cases/index.js'
import { describeMachine } from './machine.js'
import { reportProgress } from './progress.js'
import { type CaseReport, type Report, renderCase, renderMachine, reportCase } from './report.js'
import { ContenderError, measureRounds } from './rounds.js'

const WIDTH_OF_FILES = 110 // characters, where stdout is no terminal

try {
  await run(parseArguments(process.argv.slice(2)))
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
  else if (error instanceof ContenderError) fail(error)
  else throw error
}

async function run({ cases, quick, json }: Arguments): Promise<void> {
  const machine = describeMachine()
  const effort = quick ? QUICK_EFFORT : FULL_EFFORT
  const progress = reportProgress(process.stderr)
  const reports: CaseReport[] = []
  if (!json) console.log(renderMachine(machine))
  for (const name of cases) {
    const benchmark = await CASES[name]()
    const report = reportCase(name, benchmark, await measureRounds(name, benchmark, effort, progress))
    progress.done()
    if (!json) console.log(renderCase(report, process.stdout.columns ?? WIDTH_OF_FILES))
    reports.push(report)
  }
  if (json) console.log(JSON.stringify({ machine, quick, cases: reports } satisfies Report, null, 2))
}

/** The child has said what went wrong; here is where. */
function fail(error: ContenderError): void {
  console.error(`error: ${error.message}`)
  process.exitCode = 1
}
