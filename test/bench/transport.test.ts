import { Worker } from 'node:worker_threads'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { RingClient } from '#millrace/engines/ring-client.js'
import { timeInFlight } from '../../bench/in-flight.js'
import { Asker, type Transport } from '../../bench/transport/asker.js'
import { RingBuffers } from '../../bench/transport/ring-buffers.js'
import { exposeCollector } from './garbage.js'

exposeCollector()

const ANSWERER = new URL('../../bench/transport/answerer.js', import.meta.url)
/** More than go around either ring many times. */
const QUESTIONS = 20_000

const TRANSPORTS: Record<string, () => { asking: Transport; workerData: unknown }> = {
  'one ring of slots'() {
    const lane = new RingClient(1, { ruleName: 'default' })
    lane.start()
    return { asking: lane, workerData: { ring: lane.memory.buffer } }
  },
  'two rings of ringbuf.js'() {
    const rings = new RingBuffers()
    return { asking: rings, workerData: { ringBuffers: rings.memory } }
  },
}

for (const [name, make] of Object.entries(TRANSPORTS)) {
  test(`${name}: every question gets its own answer, one or many at a time`, async () => {
    const { asking, workerData } = make()
    const worker = new Worker(ANSWERER, { workerData })
    const asker = new Asker(asking)
    for (const callers of [1, 7, 1_000]) {
      const asked = new Set<number>()
      const count = callers === 1 ? 200 : QUESTIONS
      const figures = await timeInFlight({ callers, count, keysEach: 1 }, (i) => {
        asked.add(i)
        return asker.ask(i)
      })
      assert.is(asked.size, count)
      for (const [figure, value] of Object.entries(figures)) assert.ok(value > 0, `${figure}: ${value}`)
    }
    assert.ok(asking.isEmpty)
    await worker.terminate()
  })

  test(`${name}: more than there is room for is refused`, () => {
    const { asking } = make()
    const asker = new Asker(asking)
    const more = () => {
      for (let i = 0; i <= 1_024; i++) asker.ask(i)
    }
    assert.throws(more, 'no room')
    assert.ok(asking.isFull)
  })
}

test.run()
