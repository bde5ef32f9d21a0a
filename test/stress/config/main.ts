// npm run dev -- stress:config: processes that write to one LMDB file are killed at any moment and restarted.
import { readFlags } from '../../long-runs/flags.js'
import { progressOn } from '../../long-runs/progress.js'
import { Run, summaryOf } from './run.js'

const { kills, seed } = readFlags('npm run dev -- stress:config [options]', {
  kills: { fallback: 500, least: 1, most: 100_000, help: 'how many times a writer is killed' },
  seed: {
    fallback: 1,
    least: 0,
    most: 1e6,
    help: 'seed of the writes; the moments of death vary with the machine',
  },
})
const progress = progressOn(process.stderr)
progress.note(`${kills} kills, seed ${seed}`)
const found = await new Run(kills, seed).run(progress)
for (const complaint of found.complaints) progress.note(complaint)
console.log(summaryOf(found))
process.exitCode = found.complaints.length > 0 ? 1 : 0
