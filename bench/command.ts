/**
 * Shared code of the commands `bench` and `bench:http`. Tables, or with `--json` the figures, go to stdout;
 * progress goes to stderr. Exit codes: 0 whether or not targets are met (a busy machine must not fail a
 * build), 1 if a contender failed, 2 for invalid arguments.
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

const DEFAULT_WIDTH = 110 // columns, if stdout is not a terminal

export async function runCommand(run: (argv: readonly string[]) => Promise<void>): Promise<void> {
  try {
    await run(process.argv.slice(2))
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2
    else if (error instanceof ContenderError) fail(error)
    else throw error
  }
}

/** The child process has printed the cause; this line names the case and the contender. */
function fail(error: ContenderError): void {
  console.error(`error: ${error.message}`)
  process.exitCode = 1
}

/** Measures the cases one after the other and prints each when it is complete. @throws ContenderError */
export async function measureAndPrint(
  names: readonly CaseName[],
  { quick, json, policies }: { quick: boolean; json: boolean; policies?: number },
): Promise<Report> {
  const machine = describeMachine()
  const effort = { ...(quick ? QUICK_EFFORT : FULL_EFFORT), ...(policies !== undefined && { policies }) }
  const progress = reportProgress(process.stderr)
  const cases: CaseReport[] = []
  if (!json) console.log(machineLine(machine))
  for (const name of names) {
    const report = await runCase(name, effort, progress)
    if (!json) console.log(renderCase(report, process.stdout.columns ?? DEFAULT_WIDTH))
    cases.push(report)
  }
  const tookMs = cases.reduce((sum, report) => sum + report.tookMs, 0)
  const all: Report = { machine, quick, tookMs, cases }
  if (json) console.log(JSON.stringify(all, null, 2))
  return all
}
