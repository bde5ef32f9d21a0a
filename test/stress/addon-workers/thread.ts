// Decides by the addon and ends as it was told.
import { parentPort, workerData } from 'node:worker_threads'
import { createLimiter } from 'millrace'
import type { Ending } from './run.js'

const { ending } = workerData as { ending: Ending }
const limiter = createLimiter({ limit: 50, window: '1m', maxKeys: 1_000 })
const keys = Array.from({ length: 300 }, (_, i) => `key ${i % 100}`)
const { native } = limiter.stats()
if (native !== 'addon') throw new Error(`decides by ${native}`)
/** Every way into the addon; of the limiter made here, nothing is left when it returns. */
function decide(): void {
  limiter.checkMany(keys)
  for (const key of keys) limiter.check(key)
  const another = createLimiter({ limit: 50, window: '1m', maxKeys: 10 })
  const handle = another.handle('key')
  if (!another.check(handle).allowed || another.usage(handle) !== 1) throw new Error('not decided')
}
decide()
if (ending === 'exits') process.exit(7)
if (ending === 'throws') throw new Error('thrown on purpose')
parentPort!.postMessage('decides')
while (ending === 'is terminated') decide()
