import type { CaseReport, Report } from '../report.js'

/** One of the chart's small charts: a bar for each contender, the shorter the better. */
export interface Panel {
  readonly title: string
  readonly bars: readonly Bar[]
}

export interface Bar {
  readonly name: string
  readonly value: number
  readonly isOurs: boolean
}

/** Where a panel's bars come from: contenders of cases, one figure of each. */
interface Source {
  readonly title: string
  readonly cases: readonly { readonly name: string; readonly contenders: RegExp }[]
  readonly figure: string
}

const SOURCES: readonly Source[] = [
  {
    title: '10,000 hot keys, nanoseconds a decision',
    cases: [
      { name: 'handle', contenders: /by handle$/ },
      { name: 'check', contenders: /, cached$/ },
    ],
    figure: 'ns',
  },
  {
    title: '1,000,000 random keys, nanoseconds a decision',
    cases: [
      { name: 'million', contenders: /by handle$/ },
      { name: 'million', contenders: /, cached$/ },
    ],
    figure: 'ns',
  },
  {
    title: 'Heap that 1,000,000 keys take, MB',
    cases: [{ name: 'memory', contenders: /^(?!.*window\/10$)/ }],
    figure: 'heapMB',
  },
  {
    title: 'Longest pause of the event loop, 1,000,000 keys, ms',
    cases: [{ name: 'pauses', contenders: /./ }],
    figure: 'longestMs',
  },
]

/** Those of the panels for which something was measured. */
export function panelsOf({ cases }: Report): Panel[] {
  return SOURCES.map((source) => ({
    title: source.title,
    bars: source.cases.flatMap(({ name, contenders }) => {
      const report = cases.find((each) => each.name === name)
      return report ? barsOf(report, contenders, source.figure) : []
    }),
  })).filter(({ bars }) => bars.length > 0)
}

function barsOf({ figures }: CaseReport, contenders: RegExp, figure: string): Bar[] {
  return Object.entries(figures)
    .filter(([name]) => contenders.test(name))
    .map(([name, measured]) => ({
      name: name.replace(/, (cached|window\/60)$/, ''),
      value: measured[figure]!.median,
      isOurs: name.startsWith('Millrace'),
    }))
}
