/** A thread of `workers.ts`: warms up, reports that, waits for the start, decides, and reports its span. */
import { parentPort, workerData } from 'node:worker_threads'
import { attachLimiter } from 'millrace'
import { cachedKeys, inOrder, randomOrder } from './keys.js'
import { type Decide, decideAll, warmUp } from './timing.js'
import type { Span, Work } from './workers.js'

const { limiter: shared, start, keys, thread, operations } = workerData as Work
const limiter = attachLimiter(shared)
const keyOfAll = cachedKeys((thread + 1) * keys)
const keyAt = (index: number): string => keyOfAll(thread * keys + index)
const order = randomOrder(keys, operations)
const decide: Decide<string> = (key) => limiter.check(key).allowed

warmUp({ keyAt, order, filled: inOrder(keys) }, decide)
parentPort!.postMessage('warm')
Atomics.wait(start, 0, 0)
const startNs = process.hrtime.bigint()
const allowed = decideAll(order, 0, order.length, keyAt, decide)
parentPort!.postMessage({ startNs, endNs: process.hrtime.bigint(), allowed } satisfies Span)
