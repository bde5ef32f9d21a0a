// The thread of events-threads.test.ts.
import { subscribe } from 'node:diagnostics_channel'
import { parentPort, workerData } from 'node:worker_threads'
import { attachLimiter, setEventOptions } from 'millrace'

const { shared, keys, options } = workerData
const limiter = attachLimiter(shared)
if (options !== undefined) setEventOptions(options)
const shown: unknown[] = []
subscribe('millrace:limited', (message) => shown.push((message as { key: unknown }).key))
limiter.top({ by: 'refused' })
for (const key of keys) limiter.check(key, 2) // more than the limit
const top = limiter.top({ by: 'refused' }).map(({ key }) => key)
await limiter.close()
parentPort!.postMessage({ shown, top })
