import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Report } from '../report.js'
import { renderChart } from './chart.js'
import { renderPage } from './markdown.js'

const DOCS = fileURLToPath(new URL('../../../docs/measurements/', import.meta.url))
const CHART = 'performance.svg'

/** Writes the page and its chart into docs/measurements/ and returns their paths. */
export async function writePage(report: Report): Promise<string[]> {
  const page = join(DOCS, 'performance.md')
  const chart = join(DOCS, CHART)
  await writeFile(chart, renderChart(report))
  await writeFile(page, renderPage(report, { chart: `./${CHART}`, notes: 'tuning-diary.md' }))
  return [page, chart]
}
