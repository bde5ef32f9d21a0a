import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { type Benchmark, type Contender, ratioOf } from '../benchmark.js'
import type { ServerData } from '../transport/cache-line-server.js'
import { LINE_WORDS, pingPong, privateWords, storeRequests, WORDS } from '../transport/cache-lines.js'

const SERVER = new URL('../transport/cache-line-server.js', import.meta.url)
const ONE = 'requests, one per cache line'
const FOUR = 'requests, four per cache line'

/**
 * The distance between the processors of two threads. If the rounds differ widely, every other figure of two
 * threads does too.
 */
export const cacheLine: Benchmark = {
  title: 'moving a cache line from one thread to another',
  units: { ns: 'nanoseconds per round trip or request' },
  contenders: [
    timed('round trip of one cache line', 0, pingPong),
    storing(ONE, LINE_WORDS),
    storing(FOUR, LINE_WORDS / 4),
  ],
  goals: [{ label: `${ONE} / ${FOUR}`, unit: 'x', value: ratioOf(ONE, FOUR) }],
}

function storing(name: string, stride: number): Contender {
  const privateMemory = privateWords()
  return timed(name, stride, (words, first, count) =>
    storeRequests(words, privateMemory, first - 1, count, stride),
  )
}

/** Calls `act` twice: once for V8 to compile it, once timed. */
function timed(name: string, stride: number, act: typeof pingPong): Contender {
  return {
    name,
    async measure({ operations }) {
      const words = new Int32Array(new SharedArrayBuffer(4 * WORDS))
      const workerData: ServerData = { words, count: 2 * operations, stride }
      const worker = new Worker(SERVER, { workerData })
      await once(worker, 'message')
      act(words, 1, operations)
      const start = process.hrtime.bigint()
      act(words, operations + 1, operations)
      return { ns: Number(process.hrtime.bigint() - start) / operations }
    },
  }
}
