// Runs the test files named (below `build/test`, without their ending) in this one process, up to the first test that fails:
// node run-some.js SECONDS NAME... ends itself after so many seconds of processor time.
import { fileURLToPath } from 'node:url'
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import { run } from 'uvu/run'

const LOOK_EVERY_MS = 250

/** On a thread of its own: the tests' may be in a loop that never ends. */
function watch(seconds: number): void {
  setInterval(() => {
    const { user, system } = process.cpuUsage()
    if ((user + system) / 1e6 > seconds) process.kill(process.pid, 'SIGKILL')
  }, LOOK_EVERY_MS)
}

if (isMainThread) {
  const [seconds, ...names] = process.argv.slice(2)
  new Worker(new URL(import.meta.url), { workerData: Number(seconds) }).unref()
  const suites = names.map((name) => ({
    name,
    file: fileURLToPath(new URL(`../${name}.test.js`, import.meta.url)),
  }))
  await run(suites, { bail: true })
} else watch(workerData)
