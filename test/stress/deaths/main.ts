// npm run dev -- stress:deaths: threads die at any point of a decision or an insertion while others go on deciding.
import { readFlags } from '../../long-runs/flags.js'
import { inCommas, progressOn } from '../../long-runs/progress.js'
import { countOf, linesOf, runDeaths, summaryOf } from './all.js'

const { deaths, seed } = readFlags('npm run dev -- stress:deaths [options]', {
  deaths: { fallback: 2_000, least: 1, most: 1e6, help: 'number of threads that die' },
  seed: {
    fallback: 1,
    least: 0,
    most: 2 ** 30,
    help: 'seed of the operations; the moments of death vary with the machine',
  },
})
const progress = progressOn(process.stderr)
progress.note(`${inCommas(deaths)} deaths, seed ${seed}`)
const found = await runDeaths(deaths, seed, progress)
for (const line of linesOf(found)) progress.note(line)
console.log(summaryOf(found))
const isWrong = found.over > 0 || found.hangs > 0 || found.complaints.length > 0 || countOf(found) < deaths
process.exitCode = isWrong ? 1 : 0
