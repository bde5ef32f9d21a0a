import type { Run } from './plan.js'
import type { Ended } from './process.js'

/** What came of one run of a test file. */
export interface Outcome {
  readonly run: Run
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  /** What failed beside the tests themselves. */
  readonly complaints: readonly string[]
  readonly ended: Ended
}

/** Reads uvu's last lines. */
export function outcomeOf(run: Run, ended: Ended): Outcome {
  const { output, code, isTimedOut, left, seconds } = ended
  const [total, passed, skipped] = ['Total', 'Passed', 'Skipped'].map((word) =>
    Number(new RegExp(`${word}: +(?:\\x1b\\[\\d+m)*(\\d+)`).exec(output)?.[1] ?? 0),
  ) as [number, number, number]
  const complaints: string[] = []
  if (isTimedOut) complaints.push(`hangs: it and its processes were ended after ${seconds.toFixed(0)} s`)
  else if (code !== 0 && passed === total) complaints.push(`ended with ${code}, outside of any test`)
  else if (total + skipped === 0) complaints.push('has no test')
  if (left.length > 0) complaints.push(`left processes behind, which were ended: ${left.join('; ')}`)
  return { run, passed, failed: total - passed + complaints.length, skipped, complaints, ended }
}

export interface Totals {
  passed: number
  failed: number
  skipped: number
}

/** Of all outcomes. A test that ran on one side was not skipped. */
export function totalsOf(outcomes: readonly Outcome[]): Totals {
  const skipped = new Map<string, number>()
  for (const { run, skipped: some } of outcomes) {
    const { name } = run.file
    skipped.set(name, Math.min(some, skipped.get(name) ?? some))
  }
  const sum = (numbers: Iterable<number>) => [...numbers].reduce((sum, number) => sum + number, 0)
  return {
    passed: sum(outcomes.map(({ passed }) => passed)),
    failed: sum(outcomes.map(({ failed }) => failed)),
    skipped: sum(skipped.values()),
  }
}

/** The last line of every command that runs tests; scripts look for it. */
export function lastLine({ passed, failed, skipped }: Totals): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`
}
