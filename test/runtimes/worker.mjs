import { parentPort, workerData } from 'node:worker_threads'
import { attachLimiter } from 'millrace'
import { monotonicClock } from 'millrace/internal'

try {
  const limiter = attachLimiter(workerData)
  const isKeyAllowed = limiter.check('key').allowed
  parentPort.postMessage({ isKeyAllowed, allowed: limiter.check('carol').allowed, ms: monotonicClock.now() })
} catch ({ code }) {
  parentPort.postMessage({ code })
}
