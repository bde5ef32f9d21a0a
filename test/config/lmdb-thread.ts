// A thread that writes to an LMDB store.
import { workerData } from 'node:worker_threads'
import { lmdbConfig } from 'millrace/config/lmdb'

const { path, name } = workerData as { path: string; name: string }
const store = lmdbConfig({ path })
await Promise.all(
  Array.from({ length: 20 }, (_, i) => store.put(`${name}:${i}`, { limit: 1 + i, window: '1m' })),
)
if (name === 'closes') await store.close()
