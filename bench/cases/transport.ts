import { Worker } from 'node:worker_threads'
import { RingClient } from '#millrace/engines/pool/ring-client.js'
import { type Benchmark, type Contender, figureOf } from '../benchmark.js'
import { LOOP_UNITS, timeInFlight } from '../in-flight.js'
import { type Transport, TransportClient } from '../transport/client.js'
import { RingBuffers } from '../transport/ring-buffers.js'
import type { ServerMemory } from '../transport/server.js'

const IN_FLIGHT = [1, 32, 256, 1_000]
export const OURS = 'one ring of slots'
const RINGBUF = 'two rings of ringbuf.js'
/** The factor by which a single request takes longer than one of many in flight. */
const SLOWER_ALONE = 40

const SERVER = new URL('../transport/server.js', import.meta.url)

export const nameOf = (transport: string, callers: number) =>
  `${transport}, ${callers.toLocaleString('en')} in flight`

export const transport: Benchmark = {
  title: 'a request of 4 words to a worker, and its reply of 12 that repeats them',
  units: { ...LOOP_UNITS, thousandASecond: 'thousand replies per second' },
  contenders: IN_FLIGHT.flatMap((callers) => [
    bareRing(callers),
    echoed(RINGBUF, callers, () => {
      const rings = new RingBuffers()
      return { transport: rings, server: { ringBuffers: rings.memory } }
    }),
  ]),
  goals: IN_FLIGHT.map((callers) => ({
    label: `${callers.toLocaleString('en')} in flight, replies per second: ${OURS} / ${RINGBUF}`,
    unit: 'x' as const,
    value: (round) =>
      figureOf(round, nameOf(OURS, callers), 'thousandASecond') /
      figureOf(round, nameOf(RINGBUF, callers), 'thousandASecond'),
  })),
}

/** The ring of the pool with nothing to decide. */
export function bareRing(callers: number): Contender {
  return echoed(OURS, callers, () => {
    const ring = new RingClient(1, { ruleName: 'default' })
    ring.claimStart() // the worker below never ends
    return { transport: ring, server: { ring: ring.memory.buffer } }
  })
}

function echoed(
  name: string,
  callers: number,
  make: () => { transport: Transport; server: ServerMemory },
): Contender {
  return {
    name: nameOf(name, callers),
    async measure({ operations }) {
      const { transport, server } = make()
      new Worker(SERVER, { workerData: server })
      const client = new TransportClient(transport)
      const count = callers === 1 ? operations / SLOWER_ALONE : operations
      return timeInFlight({ callers, count, keysPerCall: 1 }, (i) => client.request(i))
    },
  }
}
