import { Worker } from 'node:worker_threads'
import { RingClient } from '#millrace/engines/ring-client.js'
import { type Benchmark, type Contender, figureOf } from '../benchmark.js'
import { LOOP_UNITS, timeInFlight } from '../in-flight.js'
import type { Answered } from '../transport/answerer.js'
import { Asker, type Transport } from '../transport/asker.js'
import { RingBuffers } from '../transport/ring-buffers.js'

const IN_FLIGHT = [1, 32, 256, 1_000]
const OURS = 'one ring of slots'
const RINGBUF = 'two rings of ringbuf.js'
/** A single request and its answer take so much longer than one of many. */
const SLOWER_ALONE = 40

const ANSWERER = new URL('../transport/answerer.js', import.meta.url)

const nameOf = (transport: string, callers: number) =>
  `${transport}, ${callers.toLocaleString('en')} in flight`

export const transport: Benchmark = {
  title: 'a request of 4 words to another thread and its answer of 12, which only says them again',
  units: { ...LOOP_UNITS, thousandASecond: 'thousand answers a second' },
  contenders: IN_FLIGHT.flatMap((callers) => [
    echoed(OURS, callers, () => {
      const lane = new RingClient(1, { ruleName: 'default' })
      lane.start() // by the thread below, which does not end
      return { asking: lane, answering: { ring: lane.memory.buffer } }
    }),
    echoed(RINGBUF, callers, () => {
      const rings = new RingBuffers()
      return { asking: rings, answering: { ringBuffers: rings.memory } }
    }),
  ]),
  goals: IN_FLIGHT.map((callers) => ({
    what: `${callers.toLocaleString('en')} in flight, answers a second: ${OURS} / ${RINGBUF}`,
    unit: 'x' as const,
    value: (round) =>
      figureOf(round, nameOf(OURS, callers), 'thousandASecond') /
      figureOf(round, nameOf(RINGBUF, callers), 'thousandASecond'),
  })),
}

function echoed(
  transport: string,
  callers: number,
  make: () => { asking: Transport; answering: Answered },
): Contender {
  return {
    name: nameOf(transport, callers),
    async measure({ operations }) {
      const { asking, answering } = make()
      new Worker(ANSWERER, { workerData: answering })
      const asker = new Asker(asking)
      const count = callers === 1 ? operations / SLOWER_ALONE : operations
      return timeInFlight({ callers, count, keysEach: 1 }, (i) => asker.ask(i))
    },
  }
}
