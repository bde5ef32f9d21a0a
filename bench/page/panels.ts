import type { CaseReport, Report } from '../report.js'

/** A panel of the chart: one bar per contender. Shorter bars are better. */
export interface Panel {
  readonly title: string
  readonly bars: readonly Bar[]
}

export interface Bar {
  readonly name: string
  readonly value: number
  readonly isMillrace: boolean
}

/** The data of a panel: one figure of the matching contenders of some cases. */
interface Source {
  readonly title: string
  readonly cases: readonly { readonly name: string; readonly contenders: RegExp }[]
  readonly figure: string
}

const SOURCES: readonly Source[] = [
  {
    title: '10,000 hot keys, nanoseconds per decision',
    cases: [
      { name: 'handle', contenders: /by handle$/ },
      { name: 'check', contenders: /, cached strings$/ },
    ],
    figure: 'ns',
  },
  {
    title: '1,000,000 random keys, nanoseconds per decision',
    cases: [
      { name: 'million', contenders: /by handle$/ },
      { name: 'million', contenders: /, cached strings$/ },
    ],
    figure: 'ns',
  },
  {
    title: 'Heap of 1,000,000 keys, MB',
    cases: [{ name: 'memory', contenders: /^(?!.*window\/10$)/ }],
    figure: 'heapMB',
  },
  {
    title: 'Longest pause of the event loop, 1,000,000 keys, ms',
    cases: [{ name: 'pauses', contenders: /./ }],
    figure: 'longestMs',
  },
]

/** The panels that have at least one measured bar. */
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
      name: name.replace(/, (cached strings|window\/60)$/, ''),
      value: measured[figure]!.median,
      isMillrace: name.startsWith('Millrace'),
    }))
}
