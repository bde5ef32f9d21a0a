import { inCommas, type Progress } from '../../long-runs/progress.js'
import { addCounts, noCounts } from './job.js'
import { type Findings, type Run, runShape } from './run.js'
import { SHAPES } from './shapes.js'

/** Runs every shape for its share of the decisions. */
export async function runAll({ threads, decisions, seed }: Run, progress: Progress): Promise<Findings> {
  const shares = SHAPES.reduce((sum, { share }) => sum + share, 0)
  const all: Findings = { ...noCounts(), windows: 0, over: 0, rollovers: 0, fullest: 0, evicted: 0 }
  let given = 0
  for (const [i, shape] of SHAPES.entries()) {
    const isLast = i === SHAPES.length - 1
    const own = isLast ? decisions - given : Math.floor((decisions * shape.share) / shares)
    given += own
    const startMs = performance.now()
    const found = await runShape(shape, { threads, decisions: own, seed: seed + i }, (made) =>
      progress.at(`${shape.name}: ${inCommas(made)} of ${inCommas(own)} decisions`),
    )
    progress.note(lineOf(shape.name, found, (performance.now() - startMs) / 1_000))
    addCounts(all, found)
    all.windows += found.windows
    all.over += found.over
    all.rollovers += found.rollovers
    all.evicted += found.evicted
  }
  return all
}

/** A line with the results of one shape. */
export function lineOf(name: string, found: Findings, seconds: number): string {
  const parts = [
    `${inCommas(found.decisions)} decisions in ${seconds.toFixed(0)} s`,
    `${inCommas(found.admissions)} admitted`,
    `${inCommas(found.windows)} windows judged, ${found.over} over (fullest ${found.fullest})`,
    `${inCommas(found.judged)} of ${inCommas(found.refusals)} refusals judged, ${found.early} early`,
    `${inCommas(found.rollovers)} rollovers`,
    `${inCommas(found.refunded)} refunded`,
    `${inCommas(found.peeks)} peeks`,
    `${inCommas(found.evicted)} evicted`,
  ]
  return [`${name}: ${parts.join(', ')}`, ...found.complaints].join('\n  ')
}

export function summaryOf(found: Findings, threads: number): string {
  const made = `${inCommas(found.decisions)} decisions by ${threads} threads`
  const early = `${found.early} early refusals (of ${inCommas(found.judged)} judged)`
  return `${made}: ${found.over} windows over the limit, ${early}`
}
