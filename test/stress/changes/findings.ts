import { type Admission, ChangesJudge, type Had } from '../../judge/changes-judge.js'
import { inCommas } from '../../long-runs/progress.js'
import { type Change, type Counts, noCounts } from './job.js'
import type { Planned } from './plan.js'

export interface Findings extends Counts {
  changes: number
  /** Judged windows; those with units of earlier windows of the rule; those at their limit; those over it. */
  windows: number
  carried: number
  full: number
  over: number
  complaints: string[]
}

export const noFindings = (): Findings => ({
  ...noCounts(),
  changes: 0,
  windows: 0,
  carried: 0,
  full: 0,
  over: 0,
  complaints: [],
})

/** The windows of a rule, from its plan and the changes in their order. */
export function hadBy(plan: readonly Planned[], changes: readonly Change[]): Had[] {
  const windows = [plan[0]!.windowMs, ...changes.map(({ windowMs }) => windowMs)]
  return windows.map((windowMs, record) => {
    const { buckets, limit } = plan.find((planned) => planned.windowMs === windowMs)!
    return { windowMs, buckets, limit, endedMs: changes[record]?.endMs ?? Number.POSITIVE_INFINITY }
  })
}

/** Judges all windows of one rule. */
export function judgeRule(
  had: readonly Had[],
  edge: 'strict' | 'smooth',
  columns: number,
  admissions: Admission[],
  found: Findings,
): ChangesJudge {
  const judge = new ChangesJudge(had, edge, columns, admissions)
  judge.judgeAll()
  found.windows += judge.windows
  found.carried += judge.carried
  found.full += judge.full
  found.over += judge.over
  found.complaints.push(...judge.complaints)
  return judge
}

/** A line with the results of one shape. */
export function lineOf(name: string, found: Findings): string {
  const parts = [
    `${inCommas(found.changes)} changes in ${inCommas(found.decisions)} decisions`,
    `${inCommas(found.overlapped)} operations overlapped one`,
    `${inCommas(found.admissions)} admitted`,
    `${inCommas(found.refunded)} refunded`,
    `${inCommas(found.batches)} batches`,
    `${inCommas(found.windows)} windows judged, ${inCommas(found.carried)} with earlier units`,
    `${inCommas(found.full)} at the limit, ${inCommas(found.over)} over`,
    `${inCommas(found.mixed)} by a limit of another window`,
  ]
  return [`${name}: ${parts.join(', ')}`, ...found.complaints].join('\n  ')
}

export function summaryOf(found: Findings): string {
  const { changes, decisions, windows, over, mixed, complaints } = found
  const made = `${inCommas(changes)} changes of a window in ${inCommas(decisions)} decisions`
  const judged = `${inCommas(over)} of ${inCommas(windows)} windows over the limit`
  return `${made}: ${judged}, ${inCommas(mixed)} limits of another window, ${complaints.length} complaints`
}

export const isSound = ({ over, mixed, complaints }: Findings): boolean =>
  over === 0 && mixed === 0 && complaints.length === 0
