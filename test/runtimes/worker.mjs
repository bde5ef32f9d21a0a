import { parentPort, workerData } from 'node:worker_threads'
import { attachLimiter } from 'millrace'

parentPort.postMessage(attachLimiter(workerData).check('carol').allowed)
