/** The task of a pool's worker: it serves one ring until the ring is idle. */
import { loadParts } from '../../core/lazily.js'
import { attachShared } from '../attach.js'
import type { SharedLimiter } from '../share.js'
import { OneRuleHandler } from './one-rule-handler.js'
import type { RequestHandler } from './request-handler.js'
import { RingServer } from './ring-server.js'
import { RingMemory } from './ring-transport.js'
import { RulesHandler } from './rules-handler.js'

/** The arguments of a ring's server. */
export interface RingTask {
  /** `RingClient.id`. */
  readonly id: number
  /** `RingClient.generation`: 1 for the first server of this ring, 2 for its replacement. */
  readonly generation: number
  readonly ring: SharedArrayBuffer
  readonly limiter: SharedLimiter
  readonly idleMs: number
}

/** The handlers of this worker by the ids of their rings, for a ring that comes back to it. */
const handlers = new Map<number, RequestHandler>()

/** Piscina calls it for each task. */
export function serve({ id, generation, ring, limiter, idleMs }: RingTask): void {
  const handler = handlers.get(id) ?? handlerOf(new RingMemory(ring), limiter)
  handlers.set(id, handler)
  const server = new RingServer(handler.memory, generation, idleMs)
  server.run(handler)
}

function handlerOf(ring: RingMemory, limiter: SharedLimiter): RequestHandler {
  const { memory, clock } = attachShared(limiter)
  loadParts()
  return memory.arenas.length === 1
    ? new OneRuleHandler(ring, memory, clock)
    : new RulesHandler(ring, memory, clock)
}
