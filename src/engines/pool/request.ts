import { Outcome } from '../../core/inline-decision.js'
import type { Signal } from '../../core/on-abort.js'
import { unitsOf, wholeUnitsIn } from '../../core/units.js'
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
  QUANTITY,
  REFUNDS,
  requestOf,
  UNITS,
  WAY,
  wordOfLimit,
} from '../../memory/request-ring.js'
import type { CallLimit } from '../engine.js'
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

/** The options of one call. */
export interface RequestOptions {
  /** The limit of a CHECK, an ATTEMPT or a PEEK. Without it, the limits of the rules hold. */
  readonly limit?: CallLimit | undefined
  readonly signal?: Signal | undefined
}

/** The operations whose reply is a number of units. */
const COUNTS: readonly Op[] = [Op.USAGE, Op.GIVE_BACK, Op.REFUND, Op.CHARGE_MORE]

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
  /** The milliseconds of USAGE and BLOCK, or the cost that a CHARGE_MORE begins at. */
  number = 0
  /** The index of the rule of USAGE, or the bits of the rules that a CHARGE_MORE does not charge. */
  rule = 0
  /** The limit of CHECK_WITHIN, ATTEMPT and PEEK, if the call has one. */
  limit: CallLimit | undefined = undefined
  /** By the index of the rule: what to give back. */
  #charges: readonly PartCharge[] = []
  protected isSent = false

  constructor(engine: DecidingEngine, op: Op, lo: number, hi: number, cost: number) {
    super()
    this.engine = engine
    this.op = op
    this.lo = lo
    this.hi = hi
    this.cost = cost
  }

  /** Takes the charges of a decision, or what a part of the cost has charged. */
  takeCharges({ rules }: AnyPoolDecision, cost: number | undefined): void {
    this.#charges = rules.map((part: PoolDecision) => ({ part, units: part.unitsOf(cost) }))
    this.#setCharges(Outcome.GIVEN_BACK)
  }

  write(memory: RingMemory, slot: number): void {
    const { words, doubles } = memory
    this.isSent = true
    const request = requestOf(slot)
    words[request + OP] = this.op
    words[request + LO] = this.lo
    words[request + HI] = this.hi
    const inUnits = this.op === Op.REFUND ? wholeUnitsIn : unitsOf
    words[request + COST] = Math.min(inUnits(this.cost, this.engine.unit ?? 1), MOST_COST)
    if (this.op === Op.CHECK) return
    doubles[(slot >>> 1) + NUMBER] = this.number
    if (this.engine.countsInUnits) doubles[(slot >>> 1) + QUANTITY] = this.cost
    words[slot + WAY] = this.rule
    if (DECISIONS.includes(this.op)) this.#writeLimits(words, slot)
    else for (const [i, charge] of this.#charges.entries()) writeCharge(memory, slotOfRule(slot, i), charge)
  }

  override reject(error: unknown): void {
    if (isNotStarted(error)) this.#setCharges(Outcome.CHARGED) // the caller may try again
    super.reject(error)
  }

  read(memory: RingMemory, slot: number): void {
    const { engine, op } = this
    if (DECISIONS.includes(op)) {
      const decision = decisionIn(memory, slot, engine)
      if (op !== Op.PEEK) engine.own?.count(decision)
      for (const part of decision.rules) part.scale(this.cost)
      this.resolve(decision)
    } else {
      const unit = COUNTS.includes(op) ? (engine.unit ?? 1) : 1
      this.resolve(memory.doubles[(slot >>> 1) + NUMBER]! * unit)
    }
  }

  #writeLimits(words: Int32Array, slot: number): void {
    const { limit } = this
    const limits = typeof limit === 'number' ? [limit] : limit
    const rules = this.engine.rules?.length ?? 1
    for (let i = 0; i < rules; i++) {
      const { unit = 1 } = this.engine.rules?.[i] ?? this.engine
      const own = limits?.[i]
      const whole = own === undefined ? undefined : wholeUnitsIn(own, unit)
      words[slotOfRule(slot, i) + LIMIT] = wordOfLimit(whole)
    }
  }

  #setCharges(outcome: Outcome): void {
    for (const { part, units } of this.#charges) if (units !== undefined) part.outcome = outcome
  }
}

/** The charge of one rule, and the whole units of it to give back; undefined if there are none. */
interface PartCharge {
  readonly part: PoolDecision
  readonly units: number | undefined
}

/** Writes the place of a charge, if there is one. */
function writeCharge({ words, doubles }: RingMemory, slot: number, { part, units }: PartCharge): void {
  words[slot + OUTCOME] = units === undefined ? Outcome.UNCOUNTED : Outcome.CHARGED
  if (units === undefined) return
  const { way, tick, receipt, limit, at } = part.charge
  words[slot + UNITS] = units
  words[slot + WAY] = way
  words[slot + CHARGED_TICK] = tick
  words[slot + REFUNDS] = receipt
  words[slot + LIMIT] = limit
  doubles[(slot >>> 1) + NUMBER] = at
}
