// One process of the run: `node starter.js STARTS IS_IN_MAIN`.
import { Worker } from 'node:worker_threads'
import { createLimiter } from 'millrace'
import { type Ending, WAYS_OF_ENDING } from './run.js'

const AT_ONCE = 2
const starts = Number(process.argv[2])
if (process.argv[3] === 'true') createLimiter({ limit: 5, window: '1m', maxKeys: 20 }).checkMany(['a', 'b'])

const begun = { threads: 0 }
let ended = 0
await Promise.all(Array.from({ length: AT_ONCE }, startMany))
console.log(`${ended} ended`)

async function startMany(): Promise<void> {
  while (begun.threads < starts) await startOne(WAYS_OF_ENDING[begun.threads++ % WAYS_OF_ENDING.length]!)
}

async function startOne(ending: Ending): Promise<void> {
  const worker = new Worker(new URL('./thread.js', import.meta.url), { workerData: { ending } })
  const failed = new Promise<string>((resolve) => worker.once('error', ({ message }) => resolve(message)))
  const exited = new Promise<number>((resolve) => worker.once('exit', resolve)) // once() of events rejects on 'error'
  if (ending === 'is terminated') {
    await new Promise((resolve) => worker.once('message', resolve)) // in the middle of its decisions
    await worker.terminate()
  }
  const code = await exited
  const expected = { returns: 0, exits: 7, 'is terminated': 1, throws: 1 }[ending]
  const said = ending === 'throws' ? await failed : ''
  if (code === expected && (said === '' || said === 'thrown on purpose')) ended++
  else console.log(`a thread that ${ending} ended with ${code} ${said}`)
}
