/** What a limiter says of one request: a snapshot. */
export interface Decision {
  readonly allowed: boolean
  /** The rule's limit when it was decided. */
  readonly limit: number
  /** Units left in the window, 0 to `limit`. Summed on first read, as of then, and kept. */
  readonly remaining: number
  /**
   * 0 when allowed; else whole milliseconds from the decision, at least 1, to the first moment at which this cost would
   * be admitted if nothing else is; `Infinity` where that moment never comes. Found on first read, as of then, and kept.
   */
  readonly retryAfterMs: number
  /** Whole milliseconds from the decision until the whole limit is back. Found on first read, as of then, and kept. */
  readonly resetMs: number
  /** The name of the rule that decided. */
  readonly rule: string
  /** All six fields, computed now. */
  toJSON(): DecisionFields
}

/** A {@link Decision} as plain data. */
export type DecisionFields = Omit<Decision, 'toJSON'>

export function fieldsOf({
  allowed,
  limit,
  remaining,
  retryAfterMs,
  resetMs,
  rule,
}: DecisionFields): DecisionFields {
  return { allowed, limit, remaining, retryAfterMs, resetMs, rule }
}

/** Where a decision finds what it did not need when it was made. */
export interface DecisionSource {
  readonly ruleName: string
  remainingOf(decision: MadeDecision): number
  retryAfterOf(decision: MadeDecision): number
  resetOf(decision: MadeDecision): number
  effectOf(decision: MadeDecision, readingMs: number): number
}

/** How a decision ended. A number, so that a decision is small. */
export const Outcome = {
  /** Over the limit, or blocked. */
  REFUSED: 0,
  /** No way was free for its key. */
  NO_ROOM: 1,
  /** Admitted without being counted: cost 0, a peek, or a full table under `onFull: 'allow'`. */
  UNCOUNTED: 2,
  /** Admitted and charged: `way`, `tick` and `refunds` say where. */
  CHARGED: 3,
  /** Was charged, and has been given back. */
  GIVEN_BACK: 4,
} as const
export type Outcome = (typeof Outcome)[keyof typeof Outcome]

const COST_BITS = 22
const COST = 2 ** COST_BITS - 1
const MOST_PACKED = 127

/**
 * The one class of decisions. Nine words in all, filled by an engine, the rest computed when somebody asks: what a
 * decision allocates is a tenth of what it costs. A cost that does not fit is over any limit, and is kept as the largest.
 */
export class MadeDecision implements Decision {
  readonly source: DecisionSource
  readonly lo: number
  readonly hi: number
  readonly limit: number
  /** The clock's reading by which it was decided, in whole milliseconds, which fit a small integer for 24 days. */
  readonly at: number
  readonly way: number
  readonly tick: number
  /** refunds:7 | outcome:3 | cost:22; the refunds that do not fit are in `#found`. */
  #charge: number
  #found: { remaining?: number; retryAfterMs?: number; resetMs?: number; refunds?: number } | undefined =
    undefined

  constructor(
    source: DecisionSource,
    lo: number,
    hi: number,
    cost: number,
    limit: number,
    at: number,
    outcome: Outcome,
    way: number,
    tick: number,
    refunds: number,
  ) {
    this.source = source
    this.lo = lo
    this.hi = hi
    this.limit = limit
    this.at = Math.floor(at)
    this.way = way
    this.tick = tick
    const packed = refunds >>> 0 < MOST_PACKED ? refunds : MOST_PACKED
    if (packed === MOST_PACKED) this.#found = { refunds }
    this.#charge = (packed << (COST_BITS + 3)) | (outcome << COST_BITS) | Math.min(cost, COST)
  }

  get allowed(): boolean {
    return this.outcome >= Outcome.UNCOUNTED
  }

  get cost(): number {
    return this.#charge & COST
  }

  get outcome(): Outcome {
    return ((this.#charge >>> COST_BITS) & 7) as Outcome
  }

  /** The stamp of its charge: what tells whether a refund by key has been at its bucket since. */
  get refunds(): number {
    const packed = this.#charge >>> (COST_BITS + 3)
    return packed === MOST_PACKED ? this.#found!.refunds! : packed
  }

  /** Marks what was CHARGED as GIVEN_BACK: it is given back once. */
  giveBack(): void {
    this.#charge = (this.#charge & ~(7 << COST_BITS)) | (Outcome.GIVEN_BACK << COST_BITS)
  }

  get remaining(): number {
    this.#found ??= {}
    this.#found.remaining ??= this.source.remainingOf(this)
    return this.#found.remaining
  }

  get retryAfterMs(): number {
    if (this.allowed) return 0
    this.#found ??= {}
    this.#found.retryAfterMs ??= this.source.retryAfterOf(this)
    return this.#found.retryAfterMs
  }

  get resetMs(): number {
    this.#found ??= {}
    this.#found.resetMs ??= this.source.resetOf(this)
    return this.#found.resetMs
  }

  /**
   * When a charged decision took effect, in milliseconds of the clock whose reading it was decided by: at that reading; but
   * where another thread had moved the key on to a later granule, at the start of that, for there it was charged.
   *
   * A log that is to judge a limiter needs this moment. One stamped a little later, when the answer is written, puts an
   * admission of long ago beside those of now, and finds windows over the limit that never were.
   */
  effectMs(readingMs: number): number {
    return this.source.effectOf(this, readingMs)
  }

  get rule(): string {
    return this.source.ruleName
  }

  toJSON(): DecisionFields {
    return fieldsOf(this)
  }

  /** What `console.log` shows: the fields that count, not where the charge lies. */
  [Symbol.for('nodejs.util.inspect.custom')](): DecisionFields {
    return fieldsOf(this)
  }
}
