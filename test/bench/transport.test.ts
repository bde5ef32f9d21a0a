import { Worker } from 'node:worker_threads'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { RingClient } from '#millrace/engines/pool/ring-client.js'
import { timeInFlight } from '../../bench/in-flight.js'
import { type Transport, TransportClient } from '../../bench/transport/client.js'
import { RingBuffers } from '../../bench/transport/ring-buffers.js'
import { exposeCollector } from './garbage.js'

exposeCollector()

const SERVER = new URL('../../bench/transport/server.js', import.meta.url)
/** Enough to wrap around either ring many times. */
const REQUESTS = 20_000

const TRANSPORTS: Record<string, () => { transport: Transport; workerData: unknown }> = {
  'one ring of slots'() {
    const ring = new RingClient(1, { ruleName: 'default' })
    ring.claimStart()
    return { transport: ring, workerData: { ring: ring.memory.buffer } }
  },
  'two rings of ringbuf.js'() {
    const rings = new RingBuffers()
    return { transport: rings, workerData: { ringBuffers: rings.memory } }
  },
}

for (const [name, make] of Object.entries(TRANSPORTS)) {
  test(`${name}: each request gets its own reply, one or many in flight`, async () => {
    const { transport, workerData } = make()
    const worker = new Worker(SERVER, { workerData })
    const client = new TransportClient(transport)
    for (const callers of [1, 7, 1_000]) {
      const sent = new Set<number>()
      const count = callers === 1 ? 200 : REQUESTS
      const figures = await timeInFlight({ callers, count, keysPerCall: 1 }, (i) => {
        sent.add(i)
        return client.request(i)
      })
      assert.is(sent.size, count)
      for (const [figure, value] of Object.entries(figures)) assert.ok(value > 0, `${figure}: ${value}`)
    }
    assert.ok(transport.isEmpty)
    await worker.terminate()
  })

  test(`${name}: a request beyond the room of the ring is refused`, () => {
    const { transport } = make()
    const client = new TransportClient(transport)
    const overfill = () => {
      for (let i = 0; i <= 1_024; i++) client.request(i)
    }
    assert.throws(overfill, 'no room')
    assert.ok(transport.isFull)
  })
}

test.run()
