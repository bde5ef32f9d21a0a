/**
 * What the commands of this folder have in common. Tables go to stdout, or with `--json` the figures; progress goes to
 * stderr. They end with 0 whether targets are met or not (a busy machine fails no build), with 1 where a contender
 * failed, with 2 for arguments that are not understood.
 */
import { CommanderError } from 'commander'
import { FULL_EFFORT, QUICK_EFFORT } from './benchmark.js'
import type { CaseName } from './cases/index.js'
import { machineLine } from './format.js'
import { describeMachine } from './machine.js'
import { reportProgress } from './progress.js'
import { type CaseReport, type Report, renderCase } from './report.js'
import { ContenderError } from './rounds.js'
import { runCase } from './run-case.js'

const WIDTH_OF_FILES = 110 // characters, where stdout is no terminal

export async function runCommand(run: (argv: readonly string[]) => Promise<void>): Promise<void> {
  try {
    await run(process.argv.slice(2))
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
    else if (error instanceof ContenderError) fail(error)
    else throw error
  }
}

/** The child has said what went wrong; here is where. */
function fail(error: ContenderError): void {
  console.error(`error: ${error.message}`)
  process.exitCode = 1
}

/** Measures the cases one after the other and prints each as soon as it is done. @throws ContenderError */
export async function measureAndPrint(
  names: readonly CaseName[],
  { quick, json }: { quick: boolean; json: boolean },
): Promise<Report> {
  const machine = describeMachine()
  const effort = quick ? QUICK_EFFORT : FULL_EFFORT
  const progress = reportProgress(process.stderr)
  const cases: CaseReport[] = []
  if (!json) console.log(machineLine(machine))
  for (const name of names) {
    const report = await runCase(name, effort, progress)
    if (!json) console.log(renderCase(report, process.stdout.columns ?? WIDTH_OF_FILES))
    cases.push(report)
  }
  const all: Report = { machine, quick, cases }
  if (json) console.log(JSON.stringify(all, null, 2))
  return all
}
