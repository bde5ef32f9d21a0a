// Random calls of the addon for a given time. scripts/fuzz-native.mjs runs this under a sanitizer.
import { readFlags } from '../../long-runs/flags.js'
import { inCommas, progressOn } from '../../long-runs/progress.js'
import { Fuzz, summaryOf } from './fuzz.js'

const { minutes, seconds, seed } = readFlags('npm run dev -- fuzz:native [options]', {
  minutes: { fallback: 10, least: 0, most: 1e4, help: 'how long' },
  seconds: { fallback: 0, least: 0, most: 1e4, help: 'in addition to the minutes' },
  seed: {
    fallback: 1,
    least: 0,
    most: 2 ** 31 - 1,
    help: 'what is called; not what another thread writes meanwhile',
  },
})
const progress = progressOn(process.stderr)
progress.note(`${minutes} minutes and ${seconds} seconds, seed ${seed}`)
const fuzz = new Fuzz(seed)
const endMs = performance.now() + 60_000 * minutes + 1_000 * seconds
while (performance.now() < endMs && fuzz.found.complaints.length === 0) {
  fuzz.play(1_000)
  progress.at(summaryOf(fuzz.found, seed, inCommas))
  await new Promise(setImmediate) // collected mappings are unmapped between two turns of the event loop
}
progress.clear()
const found = await fuzz.end()
for (const complaint of found.complaints) progress.note(complaint)
console.log(summaryOf(found, seed, inCommas))
process.exitCode = found.complaints.length > 0 || found.decided === 0 ? 1 : 0
