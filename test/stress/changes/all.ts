import type { Progress } from '../../long-runs/progress.js'
import { type Findings, lineOf, noFindings } from './findings.js'
import { runPool } from './pool.js'
import { type Run, runShape } from './run.js'
import { SHAPES } from './shapes.js'

/** Runs every shape, and a pool. */
export async function runAll(run: Run, progress: Progress): Promise<Findings> {
  const all = noFindings()
  const runs = [
    ...SHAPES.map((shape) => [shape.name, (at: OnRound) => runShape(shape, run, at)] as const),
    ['a pool', (at: OnRound) => runPool(run, at)] as const,
  ]
  for (const [name, act] of runs) {
    const found = await act((rounds) => progress.at(`${name}: ${rounds} of ${run.rounds} rounds`))
    progress.note(lineOf(name, found))
    const { complaints, ...counts } = found
    all.complaints.push(...complaints)
    for (const field of Object.keys(counts) as (keyof typeof counts)[]) all[field] += counts[field]
  }
  return all
}

type OnRound = (rounds: number) => void
