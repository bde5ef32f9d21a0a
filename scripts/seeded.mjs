// Runs one fault of native/test/seeded_addon.cc: `node scripts/seeded.mjs ADDON readPast|addOne|raise`.
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { isMainThread, Worker, workerData } from 'node:worker_threads'

const [path, mistake] = isMainThread ? process.argv.slice(2) : [workerData.path, 'raise']
const addon = createRequire(import.meta.url)(path)
const words = workerData?.words ?? new Int32Array(new SharedArrayBuffer(1_024)).fill(2 ** 31 - 1)
if (isMainThread && mistake === 'raise') {
  words[1] = 0
  for (let i = 0; i < 2; i++) new Worker(fileURLToPath(import.meta.url), { workerData: { path, words } })
} else {
  addon[mistake](words)
}
