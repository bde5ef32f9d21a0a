/** The worker of the case `transport`: a server on the memory of one of the two transports. */
import { workerData } from 'node:worker_threads'
import { RingServer } from '#millrace/engines/pool/ring-server.js'
import { RingMemory } from '#millrace/engines/pool/ring-transport.js'
import { echoInSlot } from './echo.js'
import { type RingBuffersMemory, serveRingBuffers } from './ring-buffers.js'

export type ServerMemory = { readonly ring: SharedArrayBuffer } | { readonly ringBuffers: RingBuffersMemory }

const NEVER_MS = 2 ** 30
const FIRST_GENERATION = 1

const memory = workerData as ServerMemory
if ('ringBuffers' in memory) serveRingBuffers(memory.ringBuffers)
const ring = new RingMemory(memory.ring)
new RingServer(ring, FIRST_GENERATION, NEVER_MS).run({
  handle(slot) {
    echoInSlot(ring.words, slot)
    return 1
  },
  handleMany: (from) => from,
  beforeSleep() {},
})
