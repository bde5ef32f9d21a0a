// npm run dev -- stress:pool: threads of a pool die under constant load.
import { readFlags } from '../../long-runs/flags.js'
import { inCommas, progressOn } from '../../long-runs/progress.js'
import { countOf, linesOf, runDeaths, summaryOf } from './all.js'

const { deaths, seed } = readFlags('npm run dev -- stress:pool [options]', {
  deaths: { fallback: 1_000, least: 1, most: 1e6, help: 'number of threads that die' },
  seed: {
    fallback: 1,
    least: 0,
    most: 2 ** 30,
    help: 'seed of the requests and manners of death; the moments vary with the machine',
  },
})
const progress = progressOn(process.stderr)
progress.note(`${inCommas(deaths)} deaths, seed ${seed}`)
const found = await runDeaths(deaths, seed, progress)
for (const line of linesOf(found)) progress.note(line)
console.log(summaryOf(found))
process.exitCode = found.hangs > 0 || found.complaints.length > 0 || countOf(found) < deaths ? 1 : 0
// Pending calls would keep the process alive.
if (found.hangs > 0) process.exit()
