// A worker thread with a limiter, for `threads.test.ts`. It does what each message asks for, and answers.
import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import { attachLimiter, type SharedLimiter } from 'millrace'
import { observe, register } from 'millrace/metrics'
import { Registry } from 'prom-client'

export interface ThreadData {
  readonly share: SharedLimiter
  readonly by: 'register' | 'observe'
  /** The thread stands still until the word is 1. */
  readonly gate: Int32Array<SharedArrayBuffer>
}

const { share, by, gate } = workerData as ThreadData
const port = parentPort!
const limiter = attachLimiter(share)
const registry = new Registry()
if (by === 'register') register({}, registry) // it adds nothing, so the thread joins once
const end = by === 'register' ? register({ api: limiter }, registry) : observe({ api: limiter })

port.postMessage('ready')
for (;;) {
  const [order] = await once(port, 'message')
  if (order === 'leave') break
  if (order === 'end') await end()
  else if (order === 'stand still') {
    port.postMessage('stands still')
    Atomics.wait(gate, 0, 0)
  } else for (let i = 0; i < order; i++) limiter.check(`key ${i}`)
  port.postMessage('done')
}
port.close()
