import { parentPort, workerData } from 'node:worker_threads'
import { attachLimiter } from 'millrace'

const limiter = attachLimiter(workerData)
parentPort.on('message', (key) => parentPort.postMessage(limiter.check(key).allowed))
