import { bound, day, machineLine, number, outcome, spread } from '../format.js'
import type { CaseReport, Report } from '../report.js'
import type { Verdict } from '../verdict.js'

export interface PageLinks {
  /** The chart beside the page. */
  readonly chart: string
  /** What is written by hand: where the time goes, what was tried. */
  readonly notes: string
}

/** The whole of docs/performance.md: nothing in it but what was measured. */
export function renderPage({ machine, quick, cases }: Report, { chart, notes }: PageLinks): string {
  const parts = [
    '# Speed and memory, and which targets are met',
    `<!-- Written by \`npm run bench -- --report\`, all of it: what is written by hand is in ${notes}. -->`,
    `${machineLine({ ...machine, date: day(machine.date) })}, by \`npm run bench -- ${quick ? '--quick ' : ''}--report\`.`,
    ...(quick ? [QUICK] : []),
    `${HOW} Where a decision's time goes, and what was tried: [notes](${notes}).`,
    `![Millrace beside its peers: time a decision, heap and longest pause](${chart})`,
    renderTargets(cases),
    ...cases.map(renderCase),
  ]
  return `${parts.join('\n\n')}\n`
}

const QUICK = `**A quick run**: it shows that everything works and about where it stands, and is not to be quoted.`

const HOW = `Each contender ran in a process of its own, one after the other, round after round. A ratio is only taken
within a round, for the machine's speed moves by more than what is measured; the median of the rounds counts, the least and
the most stand beside it.`

function renderTargets(cases: readonly CaseReport[]): string {
  const verdicts = cases
    .flatMap((report) => report.verdicts.map((verdict) => ({ ...verdict, from: report.name })))
    .filter(({ target }) => target !== undefined)
    .sort((a, b) => targetNumber(a) - targetNumber(b))
  const met = verdicts.filter((verdict) => verdict.met).length
  const rows = verdicts.map((verdict) => [
    verdict.target!,
    verdict.what,
    verdict.from,
    bound(verdict),
    `${number(verdict.value.median)} ${verdict.unit}`,
    spread(verdict.value),
    verdict.met ? 'met' : `**${outcome(verdict)}**`,
  ])
  return [
    '## Targets',
    `${met} of ${verdicts.length} are met. A number that is missing has no case yet.`,
    table(['', 'what', 'case', 'target', 'measured', 'spread', ''], rows),
  ].join('\n\n')
}

/** `P12` comes after `P2`. */
function targetNumber({ target }: Verdict): number {
  return Number(target!.slice(1))
}

function renderCase({ name, title, units, figures, verdicts, skipped }: CaseReport): string {
  const heading = `## ${name}: ${title}`
  if (skipped !== undefined) return `${heading}\n\nNot measured: ${skipped}.`
  const rows = Object.entries(figures).map(([contender, measured]) => [
    contender,
    ...Object.keys(units).map((unit) => `${number(measured[unit]!.median)} (${spread(measured[unit]!)})`),
  ])
  const others = verdicts
    .filter(({ target }) => target === undefined)
    .map(({ what, value, unit }) => `- ${what}: ${number(value.median)} ${unit} (${spread(value)})`)
  return [
    heading,
    table(['', ...Object.values(units)], rows),
    ...(others.length > 0 ? [others.join('\n')] : []),
  ].join('\n\n')
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n')
}
