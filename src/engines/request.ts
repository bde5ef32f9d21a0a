import { Outcome } from '../core/decision.js'
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
  RULE_LIMIT,
  requestOf,
  WAY,
} from '../memory/request-ring.js'
import type { CallLimit } from './engine.js'
import { PendingReply } from './pending-reply.js'
import { type AnyPoolDecision, type DecidingEngine, decisionIn, type PoolDecision } from './pool-decision.js'
import { isNotStarted } from './pool-errors.js'
import { type RingMemory, slotOfRule } from './ring-transport.js'

/** The largest cost in a request. It is larger than any limit, and than any count of a key. */
export const MOST_COST = 2 ** 31 - 1

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
export type Resolve = (decision: AnyPoolDecision | Promise<never>) => void

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
  /** The index of the rule of USAGE. */
  rule = 0
  /** The limit of CHECK_WITHIN, ATTEMPT and PEEK, if the call has one. */
  limit: CallLimit | undefined = undefined
  /** By rule: the part whose charge is given back; undefined if it has none. */
  #charges: readonly (PoolDecision | undefined)[] | undefined = undefined
  protected isSent = false

  constructor(engine: DecidingEngine, op: Op, lo: number, hi: number, cost: number) {
    super()
    this.engine = engine
    this.op = op
    this.lo = lo
    this.hi = hi
    this.cost = cost > MOST_COST ? MOST_COST : cost
  }

  /** Takes the charges of a decision, to give them back. */
  takeCharges({ rules }: AnyPoolDecision): void {
    const parts: readonly PoolDecision[] = rules
    this.#charges = parts.map((part) => (part.outcome === Outcome.CHARGED ? part : undefined))
    this.#setCharges(Outcome.GIVEN_BACK)
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
    words[slot + WAY] = this.rule
    if (DECISIONS.includes(this.op)) this.#writeLimits(words, slot)
    else
      this.#charges?.forEach((part, i) => {
        writeCharge(words, slotOfRule(slot, i), part)
      })
  }

  override reject(error: unknown): void {
    if (isNotStarted(error)) this.#setCharges(Outcome.CHARGED) // the caller may try again
    super.reject(error)
  }

  read(memory: RingMemory, slot: number): void {
    if (DECISIONS.includes(this.op)) this.resolve(decisionIn(memory, slot, this.engine))
    else this.resolve(memory.doubles[(slot >>> 1) + NUMBER])
  }

  #writeLimits(words: Int32Array, slot: number): void {
    const { limit } = this
    const limits = typeof limit === 'number' ? [limit] : limit
    const rules = this.engine.rules?.length ?? 1
    for (let i = 0; i < rules; i++) words[slotOfRule(slot, i) + LIMIT] = limits?.[i] ?? RULE_LIMIT
  }

  #setCharges(outcome: Outcome): void {
    for (const part of this.#charges ?? []) if (part !== undefined) part.outcome = outcome
  }
}

/** Writes the place of a charge, if there is one. */
function writeCharge(words: Int32Array, slot: number, part: PoolDecision | undefined): void {
  words[slot + OUTCOME] = part === undefined ? Outcome.UNCOUNTED : Outcome.CHARGED
  if (part === undefined) return
  words[slot + WAY] = part.way
  words[slot + CHARGED_TICK] = part.tick
  words[slot + REFUNDS] = part.stamp
}
