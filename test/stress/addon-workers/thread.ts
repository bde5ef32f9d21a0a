// Decides by the addon and ends as it was told.
import { parentPort, workerData } from 'node:worker_threads'
import { createLimiter } from 'millrace'
import type { Ending } from './run.js'

const { ending } = workerData as { ending: Ending }
const limiter = createLimiter({ limit: 50, window: '1m', maxKeys: 1_000 })
const keys = Array.from({ length: 300 }, (_, i) => `key ${i % 100}`)
const { native } = limiter.stats()
if (native !== 'addon') throw new Error(`decides by ${native}`)
limiter.checkMany(keys)
if (ending === 'exits') process.exit(7)
if (ending === 'throws') throw new Error('thrown on purpose')
parentPort!.postMessage('decides')
while (ending === 'is terminated') limiter.checkMany(keys)
