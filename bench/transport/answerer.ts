/** The thread that answers in the case `transport`: started with the memory of one of the two transports. */
import { workerData } from 'node:worker_threads'
import { RingServer } from '#millrace/engines/ring-server.js'
import { RingMemory } from '#millrace/engines/ring-transport.js'
import { answerInSlot } from './echo.js'
import { answerRingBuffers, type RingBuffersMemory } from './ring-buffers.js'

export type Answered = { readonly ring: SharedArrayBuffer } | { readonly ringBuffers: RingBuffersMemory }

const NEVER_MS = 2 ** 30
const FIRST_START = 1

const memory = workerData as Answered
if ('ringBuffers' in memory) answerRingBuffers(memory.ringBuffers)
const ring = new RingMemory(memory.ring)
new RingServer(ring, FIRST_START, NEVER_MS).run({
  answer(slot) {
    answerInSlot(ring.words, slot)
    return 1
  },
  answerMany: (from) => from,
  rest() {},
})
