// A thread that writes to an LMDB store: some policies, or until it is terminated.
import { parentPort, workerData } from 'node:worker_threads'
import { lmdbConfig } from 'millrace/config/lmdb'

const { path, name } = workerData as { path: string; name: string }
const store = lmdbConfig({ path })
const put = (i: number) => store.put(`${name}:${i}`, { limit: 1 + i, window: '1m' })

async function writeOn(from: number): Promise<void> {
  for (let i = 0; ; i = (i + 1) % 10) await put(from + i)
}

if (name === 'terminated') {
  await put(0)
  parentPort!.postMessage('writing')
  await Promise.all([0, 10, 20].map(writeOn))
}
await Promise.all(Array.from({ length: 20 }, (_, i) => put(i)))
if (name === 'closes') await store.close()
