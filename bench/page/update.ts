import type { Report } from '../report.js'
import { measuredLine, renderCase, renderTargets, TARGET_ROW, TARGETS, targetRows } from './markdown.js'

/**
 * A page with some cases measured again. Their sections and targets are replaced, or added; the others stay. A section
 * that was not measured with the whole page says where and when it was.
 */
export function updatePage(page: string, report: Report): string {
  const { cases } = report
  const [head, ...sections] = page.trimEnd().split(/\n\n(?=## )/) as [string, ...string[]]
  const isNew = (name: string | undefined) => cases.some((each) => each.name === name)
  const rows = sections
    .filter((section) => section.startsWith(`${TARGETS}\n`))
    .flatMap((section) => section.split('\n').filter((line) => TARGET_ROW.test(line)))
    .filter((row) => !isNew(caseOf(row)))
  const measured = new Map(
    sections.filter((section) => !section.startsWith(TARGETS)).map((section) => [nameOf(section), section]),
  )
  for (const each of cases) {
    const [heading, ...rest] = renderCase(each).split('\n\n')
    measured.set(each.name, [heading, measuredLine(report), ...rest].join('\n\n'))
  }
  return `${[head, renderTargets([...rows, ...targetRows(cases)]), ...measured.values()].join('\n\n')}\n`
}

/** The name of the case of a section. */
const nameOf = (section: string): string => /^## (.*?): /.exec(section)![1]!

/** The case of a row of a target. A bar within a cell stands behind a backslash. */
const caseOf = (row: string): string | undefined => row.split(' | ')[2]
