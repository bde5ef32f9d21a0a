// npm run dev -- stress:processes: processes that share a file are killed at any moment and restarted.
import { readFlags } from '../../long-runs/flags.js'
import { progressOn } from '../../long-runs/progress.js'
import { Run, summaryOf } from './run.js'

const { seconds, seed } = readFlags('npm run dev -- stress:processes [options]', {
  seconds: { fallback: 60, least: 1, most: 3_600, help: 'how long' },
  seed: {
    fallback: 1,
    least: 0,
    most: 1e6,
    help: 'seed of the operations; the moments of death vary with the machine',
  },
})
const progress = progressOn(process.stderr)
progress.note(`${seconds} s, seed ${seed}`)
const found = await new Run(seconds, seed).run(progress)
for (const complaint of found.complaints) progress.note(complaint)
console.log(summaryOf(found))
process.exitCode = found.over > 0 || found.complaints.length > 0 || found.deaths === 0 ? 1 : 0
