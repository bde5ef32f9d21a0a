import Table from 'cli-table3'
import type { Benchmark, Round } from './benchmark.js'
import { bound, judgedLabel, number, outcome, spread, took } from './format.js'
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
  /** The duration of the measurement. */
  readonly tookMs: number
  /** Why the case was not measured; absent if it was. */
  readonly skipped?: string
}

/** The document that `--json` prints. */
export interface Report {
  readonly machine: Machine
  readonly quick: boolean
  /** The duration of all cases together. */
  readonly tookMs: number
  readonly cases: readonly CaseReport[]
}

export function reportCase(
  name: string,
  benchmark: Benchmark,
  rounds: readonly Round[],
  tookMs: number,
): CaseReport {
  const { title, units, contenders, goals } = benchmark
  const figures = contenders.map((contender) => {
    const measured = Object.keys(units).map((unit) => [unit, summarizeFigure(rounds, contender.name, unit)])
    return [contender.name, Object.fromEntries(measured)]
  })
  const verdicts = goals.map((goal) => judge(goal, rounds))
  return { name, title, units, rounds, figures: Object.fromEntries(figures), verdicts, tookMs }
}

export function reportSkipped(name: string, { title, units }: Benchmark, reason: string): CaseReport {
  return { name, title, units, rounds: [], figures: {}, verdicts: [], tookMs: 0, skipped: reason }
}

function summarizeFigure(rounds: readonly Round[], contender: string, figure: string): Summary {
  return summarize(rounds.map((round) => round[contender]![figure]!))
}

const GOAL_COLUMNS = ['goal, computed per round', 'median', 'range', 'target', 'result']
/** The columns of a case whose goals have no bound. */
const FIGURE_COLUMNS = 3

/** Renders a case as text: its figures, then its goals. */
export function renderCase(report: CaseReport, columns: number): string {
  const parts = [`\n${report.name}: ${report.title}`]
  if (report.skipped !== undefined) return `${parts[0]}\nskipped: ${report.skipped}\n`
  for (const [unit, meaning] of Object.entries(report.units)) {
    const rows = Object.entries(report.figures).map(([contender, figures]) => {
      return [contender, number(figures[unit]!.median), spread(figures[unit]!)]
    })
    parts.push(render([meaning, 'median', 'range'], rows, columns))
  }
  if (report.verdicts.length > 0) {
    const used = report.verdicts.some((verdict) => outcome(verdict) !== '')
      ? GOAL_COLUMNS.length
      : FIGURE_COLUMNS
    const rows = report.verdicts.map((verdict) => verdictRow(verdict).slice(0, used))
    parts.push(render(GOAL_COLUMNS.slice(0, used), rows, columns))
  }
  parts.push(`Rounds: ${report.rounds.length}. Duration: ${took(report.tookMs)}.`)
  return `${parts.join('\n')}\n`
}

function verdictRow(verdict: Verdict): string[] {
  const { value, unit, target } = verdict
  const judged = judgedLabel(verdict)
  return [
    target === undefined ? judged : `${target} ${judged}`,
    `${number(value.median)} ${unit}`,
    spread(value),
    bound(verdict),
    outcome(verdict),
  ]
}

/** Table characters without lines between rows. */
const COMPACT = { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' }
const NARROWEST_FIRST_COLUMN = 24
const PADDING = 2

/**
 * Renders a table whose first column shrinks to fit the terminal, or one paragraph per row if it is too
 * narrow.
 */
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
    .map(([name, ...cells]) => {
      const lines = cells.flatMap((cell, i) => (cell === '' ? [] : [`  ${head[i + 1]}: ${cell}`]))
      return [name, ...lines].join('\n')
    })
    .join('\n')
}
