/**
 * The most that `retryAfterSeconds` says: 24.8 days, the longest time in whole seconds that a timer of JavaScript takes. One
 * set for longer fires at once, so that a client that believed a larger number would come back in a loop.
 */
export const MAX_RETRY_SECONDS = 2_147_483

/**
 * What a limiter says of one request: a snapshot.
 *
 * Figures are as of the decision. They are exact if the key has not changed since; otherwise `remaining` is never more, and
 * `retryAfterMs` and `resetMs` never earlier, than was true then. What has been read once stays so. (In a table of more than
 * 1,024 places, tens of thousands of new or refunded keys in between may count as a change: see "A decision read late" in
 * `docs/guarantees.md`.)
 */
export interface Decision {
  readonly allowed: boolean
  /** The rule's limit when it was decided. */
  readonly limit: number
  /** Units left in the window after this decision, 0 to `limit`. */
  readonly remaining: number
  /**
   * 0 when allowed; else whole milliseconds from the decision, at least 1, to the first moment at which this cost would
   * be admitted if nothing else is; `Infinity` where that moment never comes. For headers take `retryAfterSeconds`.
   */
  readonly retryAfterMs: number
  /**
   * For a `Retry-After` header: `retryAfterMs` in seconds, rounded up. 0 when allowed, else a whole number from 1 to
   * 2,147,483, also where the moment never comes.
   */
  readonly retryAfterSeconds: number
  /** Whole milliseconds from the decision until the whole limit is back; `Infinity` for a key that is blocked for ever. */
  readonly resetMs: number
  /** The name of the rule that decided. */
  readonly rule: string
  /**
   * All seven fields as plain data, for `JSON.stringify`, `structuredClone` and `postMessage`. JSON has no `Infinity`
   * and would write `null`, which counts as 0: here it is `Number.MAX_SAFE_INTEGER`.
   */
  toJSON(): DecisionFields
}

/** A {@link Decision} as plain data. */
export type DecisionFields = Omit<Decision, 'toJSON'>

/** What a decision says of later: units, and whole milliseconds from the decision. */
export interface Figures {
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetMs: number
}

/** All fields, in the order in which they are shown. */
export function fieldsOf(decision: DecisionFields): DecisionFields {
  const { allowed, limit, remaining, retryAfterMs, retryAfterSeconds, resetMs, rule } = decision
  return { allowed, limit, remaining, retryAfterMs, retryAfterSeconds, resetMs, rule }
}

/** The same as JSON can bear it. */
export function jsonOf(decision: DecisionFields): DecisionFields {
  const fields = fieldsOf(decision)
  return { ...fields, retryAfterMs: finite(fields.retryAfterMs), resetMs: finite(fields.resetMs) }
}

const finite = (ms: number): number => Math.min(ms, Number.MAX_SAFE_INTEGER)

/** @see Decision.retryAfterSeconds */
export function secondsOf(retryAfterMs: number): number {
  return Math.min(Math.ceil(retryAfterMs / 1000), MAX_RETRY_SECONDS)
}

/** Where a decision finds what it did not need when it was made. */
export interface EngineEra {
  /** The engine that decided. */
  readonly engine: object
  readonly ruleName: string
  readonly estimates: {
    remaining(decision: Decided): number
    retryAfter(decision: Decided): number
    reset(decision: Decided): number
    effectOf(decision: InlineDecision, readingMs: number): number
  }
  /** Whether the way's admission word tells if it has changed since any of these decisions. */
  canTrustEpoch(way: number): boolean
}

/** How a decision ended. A number, so that a decision is small. */
export const Outcome = {
  /** Over the limit, or blocked. */
  REFUSED: 0,
  /** No way was free for its key. */
  NO_ROOM: 1,
  /** Admitted without being counted: cost 0, a peek, or a full table under `onFull: 'allow'`. */
  UNCOUNTED: 2,
  /** Admitted and charged: `way`, `tick` and `stamp` say where. */
  CHARGED: 3,
  /** Was charged, and has been given back. */
  GIVEN_BACK: 4,
} as const
export type Outcome = (typeof Outcome)[keyof typeof Outcome]

/** A decision, as far as its figures go: on which cell it was made, and what it left there. */
export interface Decided {
  readonly era: EngineEra
  readonly lo: number
  readonly hi: number
  readonly cost: number
  readonly limit: number
  /** The clock's reading by which it was decided. */
  readonly at: number
  readonly outcome: Outcome
  /** 0 or more: a decision on a key that has no way has its figures at once, by `DecisionEstimates.ofNewKey`. */
  readonly way: number
  /** The way's tick and its admission word, as the decision left them. */
  readonly tick: number
  readonly adm: number
  /** The word of UNTIL, where it was refused by a block. */
  readonly until?: number | undefined
}

/**
 * What is kept beside a decision: figures that have been worked out; UNTIL of the block that refused it, and the exact reading. It
 * takes the place of the decision's era, as most decisions have none.
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
 * The one class of decisions made inline. It is filled by an engine, and the rest computed when somebody asks: what a
 * decision allocates is a tenth of what it costs. A cost that does not fit is over any limit, and is kept as the largest.
 *
 * Its own properties are what is known at once, so that a copy by `{ ...decision }` or `structuredClone` has these and
 * nothing of the inside. The figures are getters of the class: own ones would take ten times as long to define as a
 * decision takes (`docs/performance-notes.md`). `toJSON` has them all.
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
    const packed = stamp >>> 0 < MAX_PACKED ? stamp : MAX_PACKED
    if (packed === MAX_PACKED) this.keep({ stamp })
    this.#charge = (packed << (COST_BITS + 3)) | (outcome << COST_BITS) | Math.min(cost, COST)
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

  /** @internal The clock's reading by which it was decided, or the whole millisecond before where its figures are the same. */
  get at(): number {
    return (this.#era instanceof Details ? this.#era.at : undefined) ?? this.#at
  }

  /** @internal The key's way, or -1 where it had none. */
  get way(): number {
    return this.#way
  }

  /** @internal The way's tick then, in which a charge was made. */
  get tick(): number {
    return this.#tick
  }

  /** @internal The way's admission word, as the decision left it. */
  get adm(): number {
    return this.#adm
  }

  /** @internal The word of UNTIL, where it was refused by a block. */
  get until(): number | undefined {
    return this.#era instanceof Details ? this.#era.until : undefined
  }

  /** @internal */
  get cost(): number {
    return this.#charge & COST
  }

  /** @internal */
  get outcome(): Outcome {
    return ((this.#charge >>> COST_BITS) & 7) as Outcome
  }

  /** @internal The stamp of its charge: what tells whether a refund by key has been at its bucket since. */
  get stamp(): number {
    const packed = this.#charge >>> (COST_BITS + 3)
    return packed === MAX_PACKED ? this.#details().stamp! : packed
  }

  /** @internal RefundMarks what was CHARGED as GIVEN_BACK: it is given back once. */
  giveBack(): void {
    this.#charge = (this.#charge & ~(7 << COST_BITS)) | (Outcome.GIVEN_BACK << COST_BITS)
  }

  /** @internal Keeps what can't be found later. */
  keep(details: Partial<Figures & { until: number; at: number; stamp: number }>): void {
    Object.assign(this.#details(), details)
  }

  get remaining(): number {
    const details = this.#details()
    details.remaining ??= details.era.estimates.remaining(this)
    return details.remaining
  }

  get retryAfterMs(): number {
    if (this.allowed) return 0
    const details = this.#details()
    details.retryAfterMs ??= details.era.estimates.retryAfter(this)
    return details.retryAfterMs
  }

  get retryAfterSeconds(): number {
    return secondsOf(this.retryAfterMs)
  }

  get resetMs(): number {
    const details = this.#details()
    details.resetMs ??= details.era.estimates.reset(this)
    return details.resetMs
  }

  /**
   * @internal When a charged decision took effect, in milliseconds of the clock whose reading it was decided by: at that reading;
   * but where another thread had moved the key on to a later granule, at the start of that, for there it was charged.
   *
   * A log that is to judge a limiter needs this moment. One stamped a little later, when the answer is written, puts an
   * admission of long ago beside those of now, and finds windows over the limit that never were.
   */
  effectMs(readingMs: number): number {
    return this.era.estimates.effectOf(this, readingMs)
  }

  toJSON(): DecisionFields {
    return jsonOf(this)
  }

  /** What `console.log` shows. */
  [Symbol.for('nodejs.util.inspect.custom')](): DecisionFields {
    return fieldsOf(this)
  }

  #details(): Details {
    if (!(this.#era instanceof Details)) this.#era = new Details(this.#era)
    return this.#era
  }
}
