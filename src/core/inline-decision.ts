import type { Decision, DecisionFields, Figures, RuleDecision } from './decision.js'
import { fieldsOf, jsonOf, secondsOf } from './decision-fields.js'
import type { FiguresDemand } from './figures-demand.js'
import type { ShadowDecision } from './verdict.js'

/** Computes the estimates of a decision when they are read. */
export interface EngineEra {
  /** The engine that decided. */
  readonly engine: object
  readonly ruleName: string
  readonly isShadow: boolean
  readonly demand: FiguresDemand
  readonly estimates: {
    remaining(decision: Decided): number
    retryAfter(decision: Decided): number
    reset(decision: Decided): number
    effectOf(decision: InlineDecision, readingMs: number): number
    receiptOf(decision: InlineDecision): number
    isBlocked(decided: Decided): boolean
  }
  /**
   * Whether an unchanged admission word proves that the way has not changed since any decision of this era.
   */
  canTrustEpoch(way: number): boolean
}

/** The outcome of a decision. A number, so that a decision is small. */
export const Outcome = {
  /** Over the limit, or blocked. */
  REFUSED: 0,
  /** The table had no place for its key. */
  NO_ROOM: 1,
  /** Admitted without being counted: cost 0, a peek, or a full table under `onFull: 'allow'`. */
  UNCOUNTED: 2,
  /** Admitted and charged: `way`, `tick` and `stamp` say where. */
  CHARGED: 3,
  /** Charged, then given back. */
  GIVEN_BACK: 4,
  /** Admitted without a charge by a rule with the option `shadow`, which would have refused it. */
  SHADOWED: 5,
  /** Not decided: the rule has changed meanwhile. No decision has this outcome. */
  OUTDATED: 6,
} as const
export type Outcome = (typeof Outcome)[keyof typeof Outcome]

/** Whether the rule had no room, or would have had none. */
export const isRefusal = (outcome: Outcome): boolean =>
  outcome < Outcome.UNCOUNTED || outcome === Outcome.SHADOWED

/**
 * The part of a decision from which its estimates are computed: its cell, and the state that it left there.
 */
export interface Decided {
  readonly era: EngineEra
  readonly lo: number
  readonly hi: number
  readonly cost: number
  readonly limit: number
  /** The clock's reading of the decision. */
  readonly at: number
  readonly outcome: Outcome
  /** 0 or more. `DecisionEstimates.ofNewKey` computes the estimates of a key without a way at once. */
  readonly way: number
  /** The way's tick and its admission word, as the decision left them. */
  readonly tick: number
  readonly adm: number
  /** The word of UNTIL, if a block refused it. */
  readonly until?: number | undefined
}

/**
 * Optional parts of a decision: computed estimates, UNTIL of the block that refused it, the exact reading, a
 * large stamp. Most decisions have none, so a reference to them takes the place of the decision's era.
 */
class Details {
  readonly era: EngineEra
  remaining: number | undefined
  retryAfterMs: number | undefined
  resetMs: number | undefined
  until: number | undefined
  at: number | undefined
  stamp: number | undefined

  constructor(era: EngineEra) {
    this.era = era
  }
}

const COST_BITS = 22
const COST = 2 ** COST_BITS - 1
const MAX_PACKED = 127

/**
 * A decision of the inline engine. The engine fills it. The estimates are computed when they are read, or
 * with the decision while those of others are read (`FiguresDemand`): the allocation of a decision is a tenth
 * of its cost. A cost that does not fit is over any limit, and is kept as the largest. The class extends no
 * other: `super()` would add to the bytecode of the constructor, and V8 inlines only what is below a bound
 * (`docs/measurements/tuning-diary.md`; `npm run bench:instructions` lists what it inlines).
 *
 * Its own properties are the fields that are known at once. A copy by `{ ...decision }` or `structuredClone`
 * has these and nothing private. The estimates are getters of the class: own getters would take ten times as
 * long to define as a decision takes (`docs/measurements/tuning-diary.md`). `toJSON` has all fields.
 */
export class InlineDecision implements Decision {
  readonly allowed: boolean
  readonly limit: number
  readonly rule: string
  #era: EngineEra | Details
  readonly #lo: number
  readonly #hi: number
  readonly #at: number
  readonly #way: number
  readonly #tick: number
  readonly #adm: number
  /** stamp:7 | outcome:3 | cost:22. A stamp that does not fit is in `Details`. */
  #charge: number

  constructor(
    era: EngineEra,
    lo: number,
    hi: number,
    cost: number,
    limit: number,
    at: number,
    outcome: Outcome,
    way: number,
    tick: number,
    stamp: number,
    adm: number,
  ) {
    this.allowed = outcome >= Outcome.UNCOUNTED
    this.limit = limit
    this.rule = era.ruleName
    this.#era = era
    this.#lo = lo
    this.#hi = hi
    this.#at = at
    this.#way = way
    this.#tick = tick
    this.#adm = adm
    const packed = stamp >>> 0 < MAX_PACKED ? stamp : this.#keepStamp(stamp)
    this.#charge = (packed << (COST_BITS + 3)) | (outcome << COST_BITS) | (cost < COST ? cost : COST)
  }

  /** @internal Not one that only inherits from a decision, or is a proxy of one. */
  static is(what: unknown): what is InlineDecision {
    return typeof what === 'object' && what !== null && #era in what
  }

  /** @internal The engine that decided. */
  get engine(): object {
    return this.era.engine
  }

  /** @internal */
  get era(): EngineEra {
    return this.#era instanceof Details ? this.#era.era : this.#era
  }

  /** @internal */
  get lo(): number {
    return this.#lo
  }

  /** @internal */
  get hi(): number {
    return this.#hi
  }

  /**
   * @internal The reading of the decision, or the whole millisecond before it if the estimates are the same.
   */
  get at(): number {
    return (this.#era instanceof Details ? this.#era.at : undefined) ?? this.#at
  }

  /** @internal The key's way, or -1 if it had none. */
  get way(): number {
    return this.#way
  }

  /** @internal The cell's tick at the decision. A charge was made in it. */
  get tick(): number {
    return this.#tick
  }

  /** @internal The admission word that the decision left. */
  get adm(): number {
    return this.#adm
  }

  /** @internal The word of UNTIL, if a block refused it. */
  get until(): number | undefined {
    return this.#era instanceof Details ? this.#era.until : undefined
  }

  /** @internal Whether it was refused because its key is blocked. */
  get isBlocked(): boolean {
    return this.until !== undefined && this.era.estimates.isBlocked(this)
  }

  /** @internal */
  get cost(): number {
    return this.#charge & COST
  }

  /** @internal */
  get outcome(): Outcome {
    return ((this.#charge >>> COST_BITS) & 7) as Outcome
  }

  /** @internal The stamp of its charge. */
  get stamp(): number {
    const packed = this.#charge >>> (COST_BITS + 3)
    return packed === MAX_PACKED ? this.#details().stamp! : packed
  }

  /** @internal */
  get receipt(): number {
    return this.era.estimates.receiptOf(this)
  }

  /** @internal Changes the outcome from CHARGED to GIVEN_BACK. A charge is given back only once. */
  giveBack(): void {
    this.#charge = (this.#charge & ~(7 << COST_BITS)) | (Outcome.GIVEN_BACK << COST_BITS)
  }

  /** @internal Keeps values that can't be computed later. */
  keep(details: Partial<Figures & { until: number; at: number; stamp: number }>): void {
    Object.assign(this.#details(), details)
  }

  /** @internal Keeps the figures, computed at once. `retryAfterMs` is that of a refusal, or 0. */
  show(remaining: number, retryAfterMs: number, resetMs: number): void {
    const details = this.#details()
    details.remaining = remaining
    details.retryAfterMs = retryAfterMs
    details.resetMs = resetMs
  }

  #keepStamp(stamp: number): number {
    this.keep({ stamp })
    return MAX_PACKED
  }

  get remaining(): number {
    const details = this.#readDetails()
    details.remaining ??= details.era.estimates.remaining(this)
    return details.remaining
  }

  get retryAfterMs(): number {
    return this.allowed ? 0 : this.#refusedMs()
  }

  get shadow(): ShadowDecision | undefined {
    if (!this.era.isShadow) return undefined
    if (this.outcome !== Outcome.SHADOWED) return { allowed: true, retryAfterMs: 0 }
    return { allowed: false, retryAfterMs: this.#refusedMs() }
  }

  get retryAfterSeconds(): number {
    return secondsOf(this.retryAfterMs)
  }

  get rules(): readonly RuleDecision[] {
    return [this]
  }

  get resetMs(): number {
    const details = this.#readDetails()
    details.resetMs ??= details.era.estimates.reset(this)
    return details.resetMs
  }

  /**
   * @internal The moment at which a charged decision took effect, in milliseconds of its clock: its reading.
   * If another thread had moved the key to a later granule, the decision was charged there, and its moment is
   * the start of that granule.
   *
   * A log that is used to check a limiter needs this moment. A time that is taken a little later, when the
   * log is written, may move an old admission into a window with new ones. That window then seems to be over
   * the limit.
   */
  effectMs(readingMs: number): number {
    return this.era.estimates.effectOf(this, readingMs)
  }

  toJSON(): DecisionFields {
    return jsonOf(this)
  }

  [Symbol.for('nodejs.util.inspect.custom')](): DecisionFields {
    return fieldsOf(this)
  }

  /** How long the request is refused, or would have been. */
  #refusedMs(): number {
    const details = this.#readDetails()
    details.retryAfterMs ??= details.era.estimates.retryAfter(this)
    return details.retryAfterMs
  }

  #readDetails(): Details {
    const details = this.#details()
    details.era.demand.renew()
    return details
  }

  #details(): Details {
    if (!(this.#era instanceof Details)) this.#era = new Details(this.#era)
    return this.#era
  }
}
