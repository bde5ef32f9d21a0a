// npm run dev -- stress: threads decide on one limiter at full speed. An exact log judges every admission, and every
// refusal without overlapping operations.
import { readFlags } from '../../long-runs/flags.js'
import { inCommas, progressOn } from '../../long-runs/progress.js'
import { runAll, summaryOf } from './all.js'

const run = readFlags('npm run dev -- stress [options]', {
  decisions: { fallback: 1_000_000_000, least: 1_000, most: 1e12, help: 'decisions in all' },
  threads: { fallback: 4, least: 2, most: 8, help: 'threads on each limiter' },
  seed: {
    fallback: 1,
    least: 0,
    most: 2 ** 31 - 1,
    help: 'seed of the operations; their interleaving varies with the machine',
  },
})
const progress = progressOn(process.stderr)
progress.note(`${inCommas(run.decisions)} decisions by ${run.threads} threads, seed ${run.seed}`)
const findings = await runAll(run, progress)
console.log(summaryOf(findings, run.threads))
process.exitCode = findings.over > 0 || findings.early > 0 || findings.judged === 0 ? 1 : 0
