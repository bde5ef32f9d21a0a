/** The task of a pool's worker: it serves one ring until the ring is idle. */
import type { InlineDecision } from '../core/decision.js'
import {
  CHARGED_TICK,
  COST,
  EACH,
  HI,
  LIMIT,
  LO,
  NUMBER,
  OP,
  Op,
  OUTCOME,
  REFUNDS,
  REMAINING,
  RESET_MS,
  RETRY_AFTER_MS,
  RULE_LIMIT,
  requestOf,
  WAY,
} from '../memory/request-ring.js'
import { NativeRequestServer } from '../native/request-server.js'
import { attachShared } from './attach.js'
import { decideBatch } from './batch.js'
import { InlineEngine } from './inline.js'
import { type RingHandler, RingServer } from './ring-server.js'
import { AREAS, type Area, RingMemory } from './ring-transport.js'
import type { SharedLimiter } from './share.js'

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

/**
 * Requests that follow each other within microseconds share one reading of the clock, as the keys of a batch
 * do.
 */
const REQUESTS_PER_READING = 16

/** The handlers of this worker by the ids of their rings, for a ring that comes back to it. */
const handlers = new Map<number, RequestHandler>()

/** Piscina calls it for each task. */
export function serve({ id, generation, ring, limiter, idleMs }: RingTask): void {
  const handler = handlers.get(id) ?? new RequestHandler(new RingMemory(ring), limiter)
  handlers.set(id, handler)
  const server = new RingServer(handler.memory, generation, idleMs)
  server.run(handler)
}

/** Handles the requests of a ring by an inline engine. */
class RequestHandler implements RingHandler {
  readonly memory: RingMemory
  readonly engine: InlineEngine
  readonly #areas: Area[]
  readonly #native: NativeRequestServer | undefined
  /** Whether a request just before has taken a reading of the clock. */
  #hasReading = false

  constructor(memory: RingMemory, limiter: SharedLimiter) {
    const { memory: shared, clock } = attachShared(limiter)
    const [arena] = shared.arenas
    this.memory = memory
    this.engine = new InlineEngine(arena, shared.names[0], clock)
    this.#native = NativeRequestServer.for(arena, memory.words)
    this.#areas = Array.from({ length: AREAS }, (_, i) => memory.area(i))
  }

  beforeSleep(): void {
    this.engine.flush()
  }

  /**
   * The addon, if it is loaded, decides requests by one reading of the clock, up to the first one that it
   * does not admit.
   */
  handleMany(from: number, to: number): number {
    const native = this.#native
    if (native === undefined || ((to - from) | 0) < native.least) return from
    const { reading } = this.engine
    reading.take()
    this.#hasReading = false
    const stopped = native.serve(from, to, reading.nowMs)
    this.engine.tally((stopped - from) | 0, 0)
    return stopped
  }

  handle(slot: number, nth: number): number {
    if (nth % REQUESTS_PER_READING === 0) this.#hasReading = false
    const { words, doubles } = this.memory
    const { engine } = this
    const double = slot >>> 1
    const request = requestOf(slot)
    const lo = words[request + LO]!
    const hi = words[request + HI]!
    const cost = words[request + COST]!
    switch (words[request + OP] as Op) {
      case Op.CHECK:
        this.#check(slot, lo, hi, cost, engine.limit)
        break
      case Op.CHECK_WITHIN:
        this.#check(slot, lo, hi, cost, words[slot + LIMIT]!)
        break
      case Op.ATTEMPT:
        engine.withoutCharge(() => this.#check(slot, lo, hi, cost, this.#limitIn(slot)))
        break
      case Op.PEEK:
        this.#peek(slot, engine.peek(lo, hi, cost, this.#limitIn(slot)))
        break
      case Op.USAGE:
        doubles[double + NUMBER] = engine.usage(lo, hi, doubles[double + NUMBER]!)
        break
      case Op.GIVE_BACK:
        doubles[double + NUMBER] = this.#giveBack(slot, cost)
        break
      case Op.REFUND:
        doubles[double + NUMBER] = engine.changes.refund(lo, hi, cost)
        break
      case Op.PENALIZE:
        doubles[double + NUMBER] = Number(engine.changes.penalize(lo, hi, cost))
        break
      case Op.BLOCK:
        doubles[double + NUMBER] = Number(engine.changes.block(lo, hi, doubles[double + NUMBER]!))
        break
      case Op.UNBLOCK:
        doubles[double + NUMBER] = Number(engine.changes.unblock(lo, hi))
        break
      case Op.CLEAR:
        engine.changes.clear(lo, hi)
        break
      case Op.CLEAR_ALL:
        engine.changes.clearAll()
        break
      case Op.FLUSH:
        engine.flush()
        break
      case Op.BATCH:
        return this.#decideBatch(slot, cost)
    }
    return 1
  }

  #check(slot: number, lo: number, hi: number, cost: number, limit: number): void {
    const { words, doubles } = this.memory
    const { engine } = this
    if (!this.#hasReading) {
      engine.reading.take()
      this.#hasReading = true
    }
    const outcome = engine.decide(lo, hi, cost, limit, -1)
    words[slot + LIMIT] = limit
    words[slot + OUTCOME] = outcome
    words[slot + WAY] = engine.way
    words[slot + CHARGED_TICK] = engine.lastCharge.chargedTick
    words[slot + REFUNDS] = engine.lastCharge.chargedStamp
    const { remaining, retryAfterMs, resetMs } = engine.figuresOf(lo, hi, cost, limit, outcome)
    words[slot + REMAINING] = remaining
    const double = slot >>> 1
    doubles[double + RETRY_AFTER_MS] = retryAfterMs
    doubles[double + RESET_MS] = resetMs
  }

  /** The limit of the call, or the rule's. */
  #limitIn(slot: number): number {
    const limit = this.memory.words[slot + LIMIT]!
    return limit === RULE_LIMIT ? this.engine.limit : limit
  }

  #peek(slot: number, decision: InlineDecision): void {
    const { words, doubles } = this.memory
    const double = slot >>> 1
    words[slot + LIMIT] = decision.limit
    words[slot + OUTCOME] = decision.outcome
    words[slot + REMAINING] = decision.remaining
    doubles[double + RETRY_AFTER_MS] = (decision.shadow ?? decision).retryAfterMs
    doubles[double + RESET_MS] = decision.resetMs
  }

  #giveBack(slot: number, cost: number): number {
    const { words } = this.memory
    const [way, tick, stamp] = [words[slot + WAY]!, words[slot + CHARGED_TICK]!, words[slot + REFUNDS]!]
    return this.engine.changes.giveBackFrom(way, tick, cost, stamp)
  }

  #decideBatch(slot: number, cost: number): number {
    const { words } = this.memory
    const area = this.#areas[words[slot + WAY]!]!
    const length = words[slot + CHARGED_TICK]!
    const costs = cost === EACH ? area.costs.slice(0, length) : cost
    const fingerprints = area.fingerprints.slice(0, 2 * length)
    const batch = decideBatch(this.engine, fingerprints, costs, words[slot + REFUNDS] === 1)
    area.allowed.set(batch.allowed)
    if (batch.remaining) area.remaining.set(batch.remaining)
    let refused = 0
    for (let i = 0; i < length; i++) if (batch.allowed[i] === 0) refused++
    if (refused > 0) for (let i = 0; i < length; i++) area.retryAfterMs[i] = batch.retryAfterMs(i)
    words[slot + OUTCOME] = refused
    return length
  }
}
