import type { TestFile } from './files.js'
import type { Run } from './plan.js'
import type { Ended } from './process.js'

/** The names of the files of a run, such as `core/clock`, or `core/{clock, units}`. */
export function namesOf({ files }: Run): string {
  const [first, ...others] = files.map(({ name }) => name)
  if (others.length === 0) return first!
  const folder = first!.slice(0, first!.lastIndexOf('/') + 1)
  return `${folder}{${files.map(({ name }) => name.slice(folder.length)).join(', ')}}`
}

/** The names of the files of a run whose tests failed or did not end; all of them if the failure is outside of tests. */
export function failedIn({ run: { files }, problems, ended: { output } }: Outcome): string[] {
  const isWhole = ({ path }: TestFile) => {
    const [passed, total] = countsOf(path, output)
    return total > 0 && passed === total
  }
  const failed = files.length === 1 || problems.length > 0 ? files : files.filter((file) => !isWhole(file))
  return failed.map(({ name }) => name)
}

/** The result of one run. */
export interface Outcome {
  readonly run: Run
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  /** Failures outside the tests. */
  readonly problems: readonly string[]
  /** Lines that the file wants to be seen also where it passes: what it was run on, or what it was not. */
  readonly notes: readonly string[]
  readonly ended: Ended
}

/** The end of uvu's last lines. */
export const SUMMARY = /\n {2}Total: .*\n.*Passed: .*\n.*Skipped: .*\n.*Duration: .*\s*$/

/** uvu begins its tests once the process is idle: what is imported later begins another turn beside the first one. */
const TOTALS = /^ {2}Total: /gm

/** Of a file of `together.ts`: the numbers of passed tests and of all. */
function countsOf(path: string, output: string): [passed: number, total: number] {
  const [, own = ''] = output.split(`${path}\n`)
  const [, passed = 0, total = 0] = / {2}\((\d+) \/ (\d+)\)/.exec(own.split('.test.js\n')[0]!) ?? []
  return [Number(passed), Number(total)]
}

/** Reads the counts from uvu's last lines. */
export function outcomeOf(run: Run, ended: Ended): Outcome {
  const { output, code, isTimedOut, isLingering, left, seconds } = ended
  const [total, passed, skipped] = ['Total', 'Passed', 'Skipped'].map((word) =>
    Number(new RegExp(`${word}: +(?:\\x1b\\[\\d+m)*(\\d+)`).exec(output)?.[1] ?? 0),
  ) as [number, number, number]
  const problems: string[] = []
  if (isTimedOut) problems.push(`timed out: it and its processes were killed after ${seconds.toFixed(0)} s`)
  else if (isLingering) problems.push('did not end by itself after its tests, and was killed')
  else if (code !== 0 && passed === total) problems.push(`exited with ${code}, outside any test`)
  else if (total + skipped === 0) problems.push('has no tests')
  else if (output.match(TOTALS)!.length > 1)
    problems.push('ran its tests in several turns: see test/run/marks.test.ts')
  else if (run.files.length > 1)
    for (const { name, path } of run.files) {
      const [, own] = countsOf(path, output)
      if (own === 0 && skipped === 0) problems.push(`has no tests in ${name}`)
    }
  if (left.length > 0) problems.push(`left processes running, which were killed: ${left.join('; ')}`)
  const notes = [...output.matchAll(/(?:note: (?=\S)|(?=not run: ))(.*)/g)].map(([, note]) => note!.trimEnd())
  return { run, passed, failed: total - passed + problems.length, skipped, problems, notes, ended }
}

export interface Totals {
  passed: number
  failed: number
  skipped: number
}

/** The totals of all outcomes. A test that ran on one side does not count as skipped. */
export function totalsOf(outcomes: readonly Outcome[]): Totals {
  const skipped = new Map<string, number>()
  for (const { run, skipped: count } of outcomes) {
    const name = namesOf(run)
    skipped.set(name, Math.min(count, skipped.get(name) ?? count))
  }
  const sum = (numbers: Iterable<number>) => [...numbers].reduce((sum, number) => sum + number, 0)
  return {
    passed: sum(outcomes.map(({ passed }) => passed)),
    failed: sum(outcomes.map(({ failed }) => failed)),
    skipped: sum(skipped.values()),
  }
}

/** The last line of every command that runs tests; scripts parse it. */
export function lastLine({ passed, failed, skipped }: Totals): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`
}
