import {
  type Decision,
  type DecisionFields,
  Outcome,
  type RuleDecision,
  type ShadowDecision,
} from '../core/decision.js'
import { fieldsOf, jsonOf, secondsOf } from '../core/decision-fields.js'
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
  RULE_LIMIT,
  requestOf,
  WAY,
} from '../memory/request-ring.js'
import { PendingReply } from './pending-reply.js'
import { isNotStarted } from './pool-errors.js'
import type { RingMemory } from './ring-transport.js'

/** The largest cost in a request. It is larger than any limit, and than any count of a key. */
export const MOST_COST = 2 ** 31 - 1

/** The engine that sent the request. */
export interface DecidingEngine {
  readonly ruleName: string
  /** Whether the rule has the option `shadow`. */
  readonly isShadow?: boolean
}

/**
 * A decision by a worker. All of its figures came with the reply. Its internals are private, so that a copy
 * has only the public fields.
 */
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
  /** How long the request is refused, or would have been by a rule with the option `shadow`. */
  readonly #refusedMs: number
  #outcome: Outcome

  constructor({ words, doubles }: RingMemory, slot: number, engine: DecidingEngine) {
    const request = requestOf(slot)
    const double = slot >>> 1
    const outcome = words[slot + OUTCOME] as Outcome
    this.allowed = outcome >= Outcome.UNCOUNTED
    this.limit = words[slot + LIMIT]!
    this.remaining = words[slot + REMAINING]!
    this.#refusedMs = smallest(doubles[double + RETRY_AFTER_MS]!)
    this.retryAfterMs = this.allowed ? 0 : this.#refusedMs
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

  get rules(): readonly RuleDecision[] {
    return [this]
  }

  get shadow(): ShadowDecision | undefined {
    if (this.#engine.isShadow !== true) return undefined
    return { allowed: this.#outcome !== Outcome.SHADOWED, retryAfterMs: this.#refusedMs }
  }

  toJSON(): DecisionFields {
    return jsonOf(this)
  }

  /** @see InlineDecision */
  [Symbol.for('nodejs.util.inspect.custom')](): DecisionFields {
    return fieldsOf(this)
  }
}

/** The same number. A whole one becomes a small integer, which V8 stores in the object itself. */
const smallest = (ms: number): number => ((ms | 0) === ms ? ms | 0 : ms)

/** A request in flight, for the client. */
export interface InFlight {
  /** How many keys it is about. */
  readonly length: number
  /** Reads the reply from the slot, and resolves the promise. */
  read(memory: RingMemory, slot: number): void
  reject(error: unknown): void
}

/** A request that can wait in the backlog before it gets a slot. */
export interface RingRequest extends InFlight {
  write(memory: RingMemory, slot: number): void
}

/**
 * Resolves the promise of a decision: with the decision, or with a rejected promise if the request failed.
 */
export type Resolve = (decision: PoolDecision | Promise<never>) => void

/** Writes the request of a decision. */
export function writeCheck({ words }: RingMemory, slot: number, lo: number, hi: number, cost: number): void {
  const request = requestOf(slot)
  words[request + OP] = Op.CHECK
  words[request + LO] = lo
  words[request + HI] = hi
  words[request + COST] = cost > MOST_COST ? MOST_COST : cost
}

/** The operations whose reply is a decision. */
const DECISIONS: readonly Op[] = [Op.CHECK, Op.CHECK_WITHIN, Op.ATTEMPT, Op.PEEK]

/** One request to the pool about one key, with the promise of its reply. */
export class PoolRequest extends PendingReply<unknown> implements RingRequest {
  readonly length = 1
  readonly engine: DecidingEngine
  readonly op: Op
  readonly lo: number
  readonly hi: number
  readonly cost: number
  /** The index of its ring; -1: the ring of its key. */
  ring = -1
  /** The milliseconds of USAGE and BLOCK. */
  ms = 0
  /** The limit of CHECK_WITHIN, ATTEMPT and PEEK. */
  limit = RULE_LIMIT
  /** The decision to give back. */
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
    words[slot + LIMIT] = this.limit
    if (this.charge === undefined) return
    words[slot + WAY] = this.charge.way
    words[slot + CHARGED_TICK] = this.charge.tick
    words[slot + REFUNDS] = this.charge.stamp
  }

  override reject(error: unknown): void {
    // The caller may try again.
    if (this.charge !== undefined && isNotStarted(error)) this.charge.outcome = Outcome.CHARGED
    super.reject(error)
  }

  read(memory: RingMemory, slot: number): void {
    if (DECISIONS.includes(this.op)) this.resolve(new PoolDecision(memory, slot, this.engine))
    else this.resolve(memory.doubles[(slot >>> 1) + NUMBER])
  }
}
