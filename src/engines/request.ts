import { type Decision, type DecisionFields, fieldsOf, jsonOf, Outcome, secondsOf } from '../core/decision.js'
import {
  CHARGED_TICK,
  COST,
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
  requestOf,
  WAY,
} from '../memory/request-ring.js'
import { PendingReply } from './pending-reply.js'
import { isNotStarted } from './pool-errors.js'
import type { RingMemory } from './ring-transport.js'

/** The largest cost that travels: above any limit, and above all that a key can have used. */
export const MOST_COST = 2 ** 31 - 1

/** The engine that sent the request. */
export interface DecidingEngine {
  readonly ruleName: string
}

/** A decision that another thread has made. All of it came with the answer: a copy of it has all fields, and nothing of the inside. */
export class PoolDecision implements Decision {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number
  readonly retryAfterSeconds: number
  readonly resetMs: number
  readonly rule: string
  readonly #engine: DecidingEngine
  readonly #lo: number
  readonly #hi: number
  readonly #cost: number
  readonly #way: number
  readonly #tick: number
  readonly #stamp: number
  #outcome: Outcome

  constructor({ words, doubles }: RingMemory, slot: number, engine: DecidingEngine) {
    const request = requestOf(slot)
    const double = slot >>> 1
    const outcome = words[slot + OUTCOME] as Outcome
    this.allowed = outcome >= Outcome.UNCOUNTED
    this.limit = words[slot + LIMIT]!
    this.remaining = words[slot + REMAINING]!
    this.retryAfterMs = smallest(doubles[double + RETRY_AFTER_MS]!)
    this.retryAfterSeconds = this.allowed ? 0 : secondsOf(this.retryAfterMs)
    this.resetMs = smallest(doubles[double + RESET_MS]!)
    this.rule = engine.ruleName
    this.#engine = engine
    this.#lo = words[request + LO]!
    this.#hi = words[request + HI]!
    this.#cost = words[request + COST]!
    this.#way = words[slot + WAY]!
    this.#tick = words[slot + CHARGED_TICK]!
    this.#stamp = words[slot + REFUNDS]!
    this.#outcome = outcome
  }

  /** @internal The engine that sent the request. */
  get engine(): DecidingEngine {
    return this.#engine
  }

  /** @internal */
  get lo(): number {
    return this.#lo
  }

  /** @internal */
  get hi(): number {
    return this.#hi
  }

  /** @internal */
  get cost(): number {
    return this.#cost
  }

  /** @internal */
  get way(): number {
    return this.#way
  }

  /** @internal */
  get tick(): number {
    return this.#tick
  }

  /** @internal */
  get stamp(): number {
    return this.#stamp
  }

  /** @internal */
  get outcome(): Outcome {
    return this.#outcome
  }

  set outcome(outcome: Outcome) {
    this.#outcome = outcome
  }

  toJSON(): DecisionFields {
    return jsonOf(this)
  }

  /** @see InlineDecision */
  [Symbol.for('nodejs.util.inspect.custom')](): DecisionFields {
    return fieldsOf(this)
  }
}

/** The same number; a whole one as a small integer, which takes no memory beside the object that it is a field of. */
const smallest = (ms: number): number => ((ms | 0) === ms ? ms | 0 : ms)

/** What is under way in a slot, on the side that asks. */
export interface InFlight {
  /** How many keys it is about. */
  readonly length: number
  /** Takes the answer out of the slot. */
  read(memory: RingMemory, slot: number): void
  reject(error: unknown): void
}

/** Something that can also wait before it comes to a slot. */
export interface RingRequest extends InFlight {
  write(memory: RingMemory, slot: number): void
}

/** Settles the promise of a decision; with a promise that is rejected, where there is none. */
export type Settle = (decision: PoolDecision | Promise<never>) => void

/** What asks for a decision. */
export function writeCheck({ words }: RingMemory, slot: number, lo: number, hi: number, cost: number): void {
  const request = requestOf(slot)
  words[request + OP] = Op.CHECK
  words[request + LO] = lo
  words[request + HI] = hi
  words[request + COST] = cost > MOST_COST ? MOST_COST : cost
}

/** One question to a thread of the pool, until it is answered. */
export class PoolRequest extends PendingReply<unknown> implements RingRequest {
  readonly length = 1
  readonly engine: DecidingEngine
  readonly op: Op
  readonly lo: number
  readonly hi: number
  readonly cost: number
  /** The ring that it has to go to; -1: that of its key. */
  ring = -1
  /** Milliseconds that are asked about. */
  ms = 0
  /** The decision to be given back. */
  charge: PoolDecision | undefined = undefined
  protected isSent = false

  constructor(engine: DecidingEngine, op: Op, lo: number, hi: number, cost: number) {
    super()
    this.engine = engine
    this.op = op
    this.lo = lo
    this.hi = hi
    this.cost = cost > MOST_COST ? MOST_COST : cost
  }

  write({ words, doubles }: RingMemory, slot: number): void {
    this.isSent = true
    const request = requestOf(slot)
    words[request + OP] = this.op
    words[request + LO] = this.lo
    words[request + HI] = this.hi
    words[request + COST] = this.cost
    if (this.op === Op.CHECK) return
    doubles[(slot >>> 1) + NUMBER] = this.ms
    if (this.charge === undefined) return
    words[slot + WAY] = this.charge.way
    words[slot + CHARGED_TICK] = this.charge.tick
    words[slot + REFUNDS] = this.charge.stamp
  }

  override reject(error: unknown): void {
    if (this.charge !== undefined && isNotStarted(error)) this.charge.outcome = Outcome.CHARGED // to be tried again
    super.reject(error)
  }

  read(memory: RingMemory, slot: number): void {
    const { op } = this
    if (op === Op.CHECK || op === Op.PEEK) this.resolve(new PoolDecision(memory, slot, this.engine))
    else this.resolve(memory.doubles[(slot >>> 1) + NUMBER])
  }
}
