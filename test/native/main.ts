// npm run dev -- parity: random operations on two arenas, one by TypeScript and one by the addon.
import { readFlags } from '../long-runs/flags.js'
import { inCommas, progressOn } from '../long-runs/progress.js'
import { runParity, summaryOf } from './parity.js'

const { operations, seed } = readFlags('npm run dev -- parity [options]', {
  operations: { fallback: 10_000_000, least: 1_000, most: 1e12, help: 'operations on each side' },
  seed: { fallback: 1, least: 0, most: 2 ** 31 - 1, help: 'what is played' },
})
const progress = progressOn(process.stderr)
progress.note(`${inCommas(operations)} operations on each side, seed ${seed}`)
const found = runParity({ operations, seed }, (done) =>
  progress.at(`${inCommas(done)} of ${inCommas(operations)} operations`),
)
progress.clear()
const { admitted, refused, displaced, noRoom, rounds, by } = found
progress.note(
  `by how the cells count: ${Object.entries(by)
    .map(([sums, count]) => `${sums} ${inCommas(count)}`)
    .join(', ')}`,
)
progress.note(
  `${inCommas(rounds)} rounds: ${inCommas(admitted)} admitted and ${inCommas(refused)} refused in batches, ` +
    `${inCommas(displaced)} displaced, ${inCommas(noRoom)} without room`,
)
console.log(summaryOf(found, seed, inCommas))
process.exitCode = found.difference === undefined ? 0 : 1
