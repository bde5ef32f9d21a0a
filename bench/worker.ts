/** A thread of `workers.ts`: warms up, reports that, waits for the start, decides, and reports its span. */
import { parentPort, workerData } from 'node:worker_threads'
import { attachLimiter, type SharedLimiter } from 'millrace'
import { cachedKeys, inOrder, randomOrder } from './keys.js'
import { type Decide, decideAll, warmUp } from './timing.js'
import type { Span, Work } from './workers.js'

const { limiter: shared, start, keys, thread, operations } = workerData as Work
const keyOfAll = cachedKeys((thread + 1) * keys)
const keyAt = (index: number): string => keyOfAll(thread * keys + index)
const order = randomOrder(keys, operations)
const decide = shared === undefined ? readKey : deciding(shared)

warmUp({ keyAt, order, filled: inOrder(keys) }, decide)
parentPort!.postMessage('warm')
Atomics.wait(start, 0, 0)
const startNs = process.hrtime.bigint()
const allowed = decideAll(order, 0, order.length, keyAt, decide)
parentPort!.postMessage({ startNs, endNs: process.hrtime.bigint(), allowed } satisfies Span)

function deciding(shared: SharedLimiter): Decide<string> {
  const limiter = attachLimiter(shared)
  return (key) => limiter.check(key).allowed
}

/** Reads each character, as a limiter does. */
function readKey(key: string): boolean {
  let hash = 0
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  return hash !== 0
}
