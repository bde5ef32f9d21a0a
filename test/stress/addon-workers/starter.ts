// A process that starts and ends threads: `node starter.js STARTS IS_IN_MAIN`.
import { Worker } from 'node:worker_threads'
import { createLimiter } from 'millrace'
import { ENDINGS, type Ending } from './run.js'

const AT_ONCE = 2
const starts = Number(process.argv[2])
if (process.argv[3] === 'true') createLimiter({ limit: 5, window: '1m', maxKeys: 20 }).checkMany(['a', 'b'])

const begun = { threads: 0 }
let ended = 0
await Promise.all(Array.from({ length: AT_ONCE }, startMany))
console.log(`${ended} ended`)

async function startMany(): Promise<void> {
  while (begun.threads < starts) await startOne(ENDINGS[begun.threads++ % ENDINGS.length]!)
}

async function startOne(ending: Ending): Promise<void> {
  const worker = new Worker(new URL('./thread.js', import.meta.url), { workerData: { ending } })
  const failed = new Promise<string>((resolve) => worker.once('error', ({ message }) => resolve(message)))
  const exited = new Promise<number>((resolve) => worker.once('exit', resolve)) // once() of events rejects on 'error'
  if (ending === 'is terminated') {
    await new Promise((resolve) => worker.once('message', resolve)) // it is deciding now
    await worker.terminate()
  }
  const code = await exited
  const expected = { returns: 0, exits: 7, 'is terminated': 1, throws: 1 }[ending]
  const message = ending === 'throws' ? await failed : ''
  if (code === expected && (message === '' || message === 'thrown on purpose')) ended++
  else console.log(`a thread that ${ending} exited with ${code} ${message}`)
}
