/** `npm run dev -- accuracy:page`: writes the tables of docs/algorithms.md and docs/accuracy.svg. */
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { renderChart } from './chart.js'
import { withTables } from './page.js'
import { resultsOf } from './results.js'
import { EXAMPLE_LOG, workloads } from './workloads.js'

const DOCS = new URL('../../../docs/', import.meta.url)
const [page, chart] = ['algorithms.md', 'accuracy.svg'].map((name) => fileURLToPath(new URL(name, DOCS)))

const results = await resultsOf(workloads(EXAMPLE_LOG))
await writeFile(page!, withTables(await readFile(page!, 'utf8'), results))
await writeFile(chart!, renderChart(results))
for (const file of [page, chart]) console.error(`wrote ${file}`)
