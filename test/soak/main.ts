// `npm run dev -- soak --minutes 60`: full load from two threads, with checks that all counts match.
import { parseArgs } from 'node:util'
import { progressOn } from '../long-runs/progress.js'
import { progressLine, report } from './report.js'
import { anySeed, Soak } from './soak.js'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    keys: { type: 'string', default: '200000' },
    pace: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(anySeed()) },
  },
})
const options = {
  minutes: above(0, values.minutes, '--minutes'),
  keys: above(999, values.keys, '--keys'),
  pace: above(0, values.pace, '--pace'),
  seed: above(-1, values.seed, '--seed'),
}

const progress = progressOn(process.stderr)
const result = await new Soak({ ...options, onRest: (soFar) => progress.at(progressLine(soFar)) }).run()
progress.clear()
const { lines, held } = report(result)
for (const line of lines) console.log(line)
process.exitCode = held ? 0 : 1

function above(least: number, text: string, option: string): number {
  const value = Number(text)
  if (text !== '' && value > least && Number.isFinite(value)) return value
  console.error(`error: ${option} must be a number above ${least}, not '${text}'`)
  process.exit(2)
}
