// npm run dev -- stress:addon-workers: starts and ends threads that load the addon. `--node` sets the Node.js
// binary.
import { parseArgs } from 'node:util'
import { readFlag } from '../../long-runs/flags.js'
import { progressOn } from '../../long-runs/progress.js'
import { startAndEnd, summaryOf } from './run.js'

const { values } = parseArgs({ options: { starts: { type: 'string' }, node: { type: 'string' } } })
const starts = readFlag('starts', values.starts, { fallback: 1_000, least: 4, most: 1e6 })
const node = values.node ?? process.execPath
const progress = progressOn(process.stderr)
progress.note(`${starts} starts with ${node}`)
const found = await startAndEnd(starts, node, progress)
progress.clear()
for (const crash of found.crashes) progress.note(crash)
console.log(summaryOf(found))
process.exitCode = found.crashes.length > 0 ? 1 : 0
