// A thread that attaches a limiter with a store of its own: its policies are in the file of the workerData.
import { parentPort, workerData } from 'node:worker_threads'
import { attachLimiter } from 'millrace'
import { lmdbConfig } from 'millrace/config/lmdb'

const limiter = attachLimiter(workerData.share, { config: lmdbConfig({ path: workerData.path }) })
parentPort!.on('message', (key: string) => {
  let admitted = 0
  while (limiter.check(key).allowed) admitted++
  parentPort!.postMessage({ admitted, limit: limiter.check(key).limit, usage: limiter.usage(key) })
})
parentPort!.postMessage('ready')
