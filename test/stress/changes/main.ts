// npm run dev -- stress:changes: threads decide while others change the window and the limit. Every window is judged.
import { readFlags } from '../../long-runs/flags.js'
import { progressOn } from '../../long-runs/progress.js'
import { runAll } from './all.js'
import { isSound, summaryOf } from './findings.js'

const run = readFlags('npm run dev -- stress:changes [options]', {
  rounds: { fallback: 100, least: 1, most: 1e6, help: 'limiters of each kind, each with 55 windows or more' },
  threads: { fallback: 3, least: 2, most: 8, help: 'threads on each limiter' },
  seed: {
    fallback: 1,
    least: 0,
    most: 2 ** 20,
    help: 'seed of the operations; their interleaving varies with the machine',
  },
})
const progress = progressOn(process.stderr)
progress.note(`${run.rounds} rounds, ${run.threads} threads, seed ${run.seed}`)
const found = await runAll(run, progress)
console.log(summaryOf(found))
process.exitCode = isSound(found) && found.carried > 0 ? 0 : 1
