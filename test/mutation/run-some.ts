// Runs the test files named (below `build/test`, without their ending) in this one process, up to the first test that fails.
import { fileURLToPath } from 'node:url'
import { run } from 'uvu/run'

const suites = process.argv.slice(2).map((name) => ({
  name,
  file: fileURLToPath(new URL(`../${name}.test.js`, import.meta.url)),
}))
await run(suites, { bail: true })
