// A thread or a process that uses the limiter of another one, with a configuration store of its own.
import { parentPort, workerData } from 'node:worker_threads'
import { attachLimiter, type Limiter, openLimiter } from 'millrace'
import { lmdbConfig } from 'millrace/config/lmdb'

/** What a test sends: a key, to be admitted as often as it can be. */
export interface Admitted {
  readonly key: string
  readonly count: number
  readonly limit: number
  readonly usage: number
}

const DEFAULT = { limit: 2, window: '1m' } as const

function admit(limiter: Limiter, key: string): Admitted {
  let count = 0
  while (limiter.check(key).allowed) count++
  return { key, count, limit: limiter.peek(key).limit, usage: limiter.usage(key) }
}

if (parentPort !== null) {
  const config = lmdbConfig({ path: workerData.path })
  const limiter = attachLimiter(workerData.share, { config })
  parentPort.on('message', (key: string) => parentPort!.postMessage(admit(limiter, key)))
  parentPort.postMessage('ready')
} else {
  const [path, file] = process.argv.slice(2)
  const config = lmdbConfig({ path: path! })
  const limiter = await openLimiter({ config, default: DEFAULT, maxKeys: 1_000, shared: { file: file! } })
  process.on('message', (key: string) => process.send!(admit(limiter, key)))
  process.send!('ready')
}
