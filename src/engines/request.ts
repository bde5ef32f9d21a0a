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
} from '../memory/slots.js'
import { Awaited } from './awaited.js'
import { isUnbegun } from './pool-errors.js'
import type { RingMemory } from './ring-transport.js'

/** The largest cost that travels: above any limit, and above all that a key can have used. */
export const MOST_COST = 2 ** 31 - 1

/** Who asks: the limiter's engine in its own thread. */
export interface Asker {
  readonly ruleName: string
}

/** A decision that another thread has made. All of it came with the answer: a copy of it has all fields, and nothing of the inside. */
export class AnsweredDecision implements Decision {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number
  readonly retryAfterSeconds: number
  readonly resetMs: number
  readonly rule: string
  readonly #asker: Asker
  readonly #lo: number
  readonly #hi: number
  readonly #cost: number
  readonly #way: number
  readonly #tick: number
  readonly #refunds: number
  #outcome: Outcome

  constructor({ words, doubles }: RingMemory, slot: number, asker: Asker) {
    const request = requestOf(slot)
    const double = slot >>> 1
    const outcome = words[slot + OUTCOME] as Outcome
    this.allowed = outcome >= Outcome.UNCOUNTED
    this.limit = words[slot + LIMIT]!
    this.remaining = words[slot + REMAINING]!
    this.retryAfterMs = smallest(doubles[double + RETRY_AFTER_MS]!)
    this.retryAfterSeconds = this.allowed ? 0 : secondsOf(this.retryAfterMs)
    this.resetMs = smallest(doubles[double + RESET_MS]!)
    this.rule = asker.ruleName
    this.#asker = asker
    this.#lo = words[request + LO]!
    this.#hi = words[request + HI]!
    this.#cost = words[request + COST]!
    this.#way = words[slot + WAY]!
    this.#tick = words[slot + CHARGED_TICK]!
    this.#refunds = words[slot + REFUNDS]!
    this.#outcome = outcome
  }

  /** @internal The limiter's engine that asked. */
  get asker(): Asker {
    return this.#asker
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
  get refunds(): number {
    return this.#refunds
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

  /** @see MadeDecision */
  [Symbol.for('nodejs.util.inspect.custom')](): DecisionFields {
    return fieldsOf(this)
  }
}

/** The same number; a whole one as a small integer, which takes no memory beside the object that it is a field of. */
const smallest = (ms: number): number => ((ms | 0) === ms ? ms | 0 : ms)

/** What is under way in a slot, on the side that asks. */
export interface Asked {
  /** How many keys it is about. */
  readonly length: number
  /** Takes the answer out of the slot. */
  read(memory: RingMemory, slot: number): void
  reject(error: unknown): void
}

/** Something that can also wait before it comes to a slot. */
export interface Written extends Asked {
  write(memory: RingMemory, slot: number): void
}

/** Settles the promise of a decision; with a promise that is rejected, where there is none. */
export type Settle = (decision: AnsweredDecision | Promise<never>) => void

/** What asks for a decision. */
export function writeCheck({ words }: RingMemory, slot: number, lo: number, hi: number, cost: number): void {
  const request = requestOf(slot)
  words[request + OP] = Op.CHECK
  words[request + LO] = lo
  words[request + HI] = hi
  words[request + COST] = cost > MOST_COST ? MOST_COST : cost
}

/** One question to a thread of the pool, until it is answered. */
export class Request extends Awaited<unknown> implements Written {
  readonly length = 1
  readonly asker: Asker
  readonly op: Op
  readonly lo: number
  readonly hi: number
  readonly cost: number
  /** The ring that it has to go to; -1: that of its key. */
  ring = -1
  /** Milliseconds that are asked about. */
  ms = 0
  /** The decision to be given back. */
  charge: AnsweredDecision | undefined = undefined
  protected isSent = false

  constructor(asker: Asker, op: Op, lo: number, hi: number, cost: number) {
    super()
    this.asker = asker
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
    words[slot + REFUNDS] = this.charge.refunds
  }

  override reject(error: unknown): void {
    if (this.charge !== undefined && isUnbegun(error)) this.charge.outcome = Outcome.CHARGED // to be tried again
    super.reject(error)
  }

  read(memory: RingMemory, slot: number): void {
    const { op } = this
    if (op === Op.CHECK || op === Op.PEEK) this.resolve(new AnsweredDecision(memory, slot, this.asker))
    else this.resolve(memory.doubles[(slot >>> 1) + NUMBER])
  }
}
