import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { type Benchmark, type Contender, timesOf } from '../benchmark.js'
import { LINE_WORDS, ownWords, request, thereAndBack, WORDS } from '../transport/line.js'
import type { Answers } from '../transport/line-answerer.js'

const ANSWERER = new URL('../transport/line-answerer.js', import.meta.url)
const ONE = 'requests, one to a line'
const FOUR = 'requests, four to a line'

/** How near the processors of two threads are. Where the rounds differ by far, so does all that threads do together. */
export const line: Benchmark = {
  title: 'lines of memory from one thread to another',
  units: { ns: 'nanoseconds each' },
  contenders: [
    timed('one line, there and back', 0, thereAndBack),
    storing(ONE, LINE_WORDS),
    storing(FOUR, LINE_WORDS / 4),
  ],
  goals: [{ what: `${ONE} / ${FOUR}`, unit: 'x', value: timesOf(ONE, FOUR) }],
}

function storing(name: string, apart: number): Contender {
  const own = ownWords()
  return timed(name, apart, (words, first, count) => request(words, own, first - 1, count, apart))
}

/** `ask` is called twice: first for V8 to compile. */
function timed(name: string, apart: number, ask: typeof thereAndBack): Contender {
  return {
    name,
    async measure({ operations }) {
      const words = new Int32Array(new SharedArrayBuffer(4 * WORDS))
      const workerData: Answers = { words, count: 2 * operations, apart }
      const worker = new Worker(ANSWERER, { workerData })
      await once(worker, 'message')
      ask(words, 1, operations)
      const start = process.hrtime.bigint()
      ask(words, operations + 1, operations)
      return { ns: Number(process.hrtime.bigint() - start) / operations }
    },
  }
}
