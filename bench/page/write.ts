import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ReportScope } from '../arguments.js'
import type { Report } from '../report.js'
import { renderChart } from './chart.js'
import { type Page, renderPage } from './markdown.js'
import { updatePage } from './update.js'

const DOCS = fileURLToPath(new URL('../../../docs/measurements/', import.meta.url))
const NOTES = 'tuning-diary.md'

export const SPEED = {
  title: 'Speed and memory',
  command: 'npm run bench --',
  how: `Each contender runs in its own process, one after the other, for several rounds. Ratios are computed
within a round, because the machine's speed changes more between rounds than the contenders differ.
A case ends before its last round if no verdict can change any more. Each figure is the median of
the rounds, followed by the lowest and the highest. A target is judged on the better of the two
builds, with the addon and without, where both were measured; its row names the build if that is the
one without. What a request costs a server is counted in [instructions](instructions.md), too.`,
  chart: './performance.svg',
  notes: NOTES,
} satisfies Page

export const INSTRUCTIONS: Page = {
  title: 'Instructions of a request',
  command: 'npm run bench:instructions --',
  how: `Each server runs under valgrind's cachegrind for several numbers of requests, one after the other on one
connection. The difference of two runs, for each of the requests by which they differ, is a figure:
what it counts does not depend on the machine's load. Node runs on one thread, with fixed seeds, a
clock that goes on by 4 us at each reading, and a heap that is never collected as a whole. The
caches that cachegrind simulates are 32 KB for instructions, 32 KB for data, and 8 MB for both. The
targets compare what a limiter adds to the same server with constant headers. The functions that
each request calls come from V8's coverage, their bytecode and what is inlined from its log.`,
  notes: NOTES,
}

export const SERVICE: Page = {
  title: 'Speed and memory of the decision service',
  command: 'npm run bench:service --',
  how: `An engine, the bare route and the load are processes of one machine. What is compared is loaded by
turns, half a second each, and a figure is the median of all turns; ratios are of one run. Where
the bare route differs from itself, every other turn against the rest, as much as the ratio from its
bound, the machine was too noisy to tell.`,
  notes: NOTES,
}

/** What is written: the whole page, or what it has of the cases in the report. */
type Scope = NonNullable<ReportScope>

/** Writes the page of speed into docs/measurements/, and its chart if all cases are in the report. Returns their paths. */
export async function writeSpeed(report: Report, scope: Scope): Promise<string[]> {
  const page = await writePage('performance.md', report, SPEED, scope)
  if (scope === 'cases') return [page]
  const chart = join(DOCS, SPEED.chart)
  await writeFile(chart, renderChart(report))
  return [page, chart]
}

/** Writes the page of instructions, and returns its path. */
export async function writeInstructions(report: Report, scope: Scope): Promise<string[]> {
  return [await writePage('instructions.md', report, INSTRUCTIONS, scope)]
}

/** Writes the page of the decision service, and returns its path. */
export async function writeService(report: Report, scope: Scope): Promise<string[]> {
  return [await writePage('service.md', report, SERVICE, scope)]
}

async function writePage(name: string, report: Report, page: Page, scope: Scope): Promise<string> {
  const path = join(DOCS, name)
  const present = scope === 'cases' ? await presentPage(path) : undefined
  await writeFile(path, present === undefined ? renderPage(report, page) : updatePage(present, report))
  return path
}

/** The page as it is; undefined if there is none. */
async function presentPage(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
