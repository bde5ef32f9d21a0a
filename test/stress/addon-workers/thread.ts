// Decides with the addon and ends in the way of its `workerData`.
import { parentPort, workerData } from 'node:worker_threads'
import { createLimiter } from 'millrace'
import type { Ending } from './run.js'

const { ending } = workerData as { ending: Ending }
const limiter = createLimiter({ limit: 50, window: '1m', maxKeys: 1_000 })
const keys = Array.from({ length: 300 }, (_, i) => `key ${i % 100}`)
const { native } = limiter.stats()
if (native !== 'addon') throw new Error(`decides with ${native}`)
/** Calls every entry point of the addon, also on a limiter that becomes garbage on return. */
function decide(): void {
  limiter.checkMany(keys)
  for (const key of keys) limiter.check(key)
  const another = createLimiter({ limit: 50, window: '1m', maxKeys: 10 })
  const handle = another.handle('key')
  if (!another.check(handle).allowed || another.usage(handle) !== 1)
    throw new Error('the addon decided wrongly')
}
decide()
if (ending === 'exits') process.exit(7)
if (ending === 'throws') throw new Error('thrown on purpose')
parentPort!.postMessage('decides')
while (ending === 'is terminated') decide()
