import Table from 'cli-table3'
import type { Benchmark, Round } from './benchmark.js'
import { bound, number, outcome, spread } from './format.js'
import type { Machine } from './machine.js'
import { type Summary, summarize } from './statistics.js'
import { judge, type Verdict } from './verdict.js'

/** All figures of one case. */
export interface CaseReport {
  readonly name: string
  readonly title: string
  readonly units: Benchmark['units']
  readonly rounds: readonly Round[]
  /** By contender, then by figure. */
  readonly figures: Readonly<Record<string, Readonly<Record<string, Summary>>>>
  readonly verdicts: readonly Verdict[]
  /** Why nothing was measured, where that is so. */
  readonly skipped?: string
}

/** What `--json` prints. */
export interface Report {
  readonly machine: Machine
  readonly quick: boolean
  readonly cases: readonly CaseReport[]
}

export function reportCase(name: string, benchmark: Benchmark, rounds: readonly Round[]): CaseReport {
  const { title, units, contenders, goals } = benchmark
  const figures = contenders.map((contender) => {
    const measured = Object.keys(units).map((unit) => [unit, summarizeFigure(rounds, contender.name, unit)])
    return [contender.name, Object.fromEntries(measured)]
  })
  const verdicts = goals.map((goal) => judge(goal, rounds))
  return { name, title, units, rounds, figures: Object.fromEntries(figures), verdicts }
}

export function reportSkipped(name: string, { title, units }: Benchmark, reason: string): CaseReport {
  return { name, title, units, rounds: [], figures: {}, verdicts: [], skipped: reason }
}

function summarizeFigure(rounds: readonly Round[], contender: string, figure: string): Summary {
  return summarize(rounds.map((round) => round[contender]![figure]!))
}

/** One case as text: its figures, then what they mean for the targets. */
export function renderCase(report: CaseReport, columns: number): string {
  const parts = [`\n${report.name}: ${report.title}`]
  if (report.skipped !== undefined) return `${parts[0]}\nskipped: ${report.skipped}\n`
  for (const [unit, meaning] of Object.entries(report.units)) {
    const rows = Object.entries(report.figures).map(([contender, figures]) => {
      return [contender, number(figures[unit]!.median), spread(figures[unit]!)]
    })
    parts.push(render([meaning, 'median', 'spread'], rows, columns))
  }
  if (report.verdicts.length > 0) {
    parts.push(
      render(['of each round', 'median', 'spread', 'target', ''], report.verdicts.map(verdictRow), columns),
    )
  }
  return `${parts.join('\n')}\n`
}

function verdictRow(verdict: Verdict): string[] {
  const { value, unit, what, target } = verdict
  return [
    target === undefined ? what : `${target} ${what}`,
    `${number(value.median)} ${unit}`,
    spread(value),
    bound(verdict),
    outcome(verdict),
  ]
}

/** No line between rows. */
const COMPACT = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' }
const NARROWEST_FIRST_COLUMN = 24
const PADDING = 2

/** A table where the terminal has room for it: the first column gives way. Else a paragraph for each row. */
function render(head: readonly string[], rows: readonly string[][], columns: number): string {
  const widths = head.map(
    (title, i) => PADDING + Math.max(title.length, ...rows.map((row) => row[i]!.length)),
  )
  const borders = head.length + 1
  const others = widths.slice(1).reduce((sum, width) => sum + width, borders)
  const first = Math.min(widths[0]!, columns - others)
  if (first < Math.min(NARROWEST_FIRST_COLUMN, widths[0]!)) return renderParagraphs(head, rows)
  const table = new Table({
    head: [...head],
    chars: COMPACT,
    colWidths: [first, ...widths.slice(1)],
    wordWrap: true,
    style: { head: [], border: [] }, // no colours: the table also goes into files
  })
  table.push(...rows)
  return table.toString()
}

function renderParagraphs(head: readonly string[], rows: readonly string[][]): string {
  return rows
    .map(([what, ...cells]) => {
      const said = cells.flatMap((cell, i) => (cell === '' ? [] : [`  ${head[i + 1] || 'so'}: ${cell}`]))
      return [what, ...said].join('\n')
    })
    .join('\n')
}
