import { CompositeDecision } from '../core/composite-decision.js'
import type { Decision, DecisionFields, RuleDecision } from '../core/decision.js'
import { fieldsOf, indexOfLeast, jsonOf, ruleFieldsOf, ruleJsonOf } from '../core/decision-fields.js'
import type { DecisionSource } from '../core/decision-source.js'
import type { Rule } from '../core/rule.js'
import { unitsOf } from '../core/units.js'
import { countsRefusals, verdictOf } from '../core/verdict.js'

/** What one rule says of a request. */
export interface RemotePart extends RuleDecision {
  /**
   * Where the charge is, as the store writes it; undefined if nothing was charged. On one server: the mark, and the
   * birth of the value.
   */
  readonly receipt: readonly number[] | undefined
  /** The birth of the key's value; undefined if Redis has not decided. */
  readonly birth?: number
}

/** Whether a rule has charged a request by `check` that it has refused. @param limit in units */
export function hasCounted(rule: Rule, part: RemotePart, cost: number, limit: number): boolean {
  if (!countsRefusals(rule) || verdictOf(part).allowed) return false
  return cost > 0 && unitsOf(cost, rule.unit ?? 1) <= limit
}

/** The request of a decision, for a refund. */
export interface Requested {
  readonly owner: object
  readonly key: string
  readonly cost: number
  /** The limits of the call, in units. */
  readonly limits?: readonly (number | undefined)[] | undefined
  /** Why the store has not answered it. */
  readonly cause?: unknown
}

/** A decision that was made elsewhere: all figures are known. */
export class RemoteDecision extends CompositeDecision<RemotePart> implements Decision {
  readonly allowed: boolean
  readonly source: DecisionSource
  readonly #parts: readonly RemotePart[]
  readonly #requested: Requested
  readonly #deciding: number
  #isGivenBack = false

  /** @param refusing the index of the rule that refused, or -1 for an admission */
  constructor(requested: Requested, source: DecisionSource, parts: readonly RemotePart[], refusing: number) {
    super()
    this.allowed = refusing < 0
    this.source = source
    this.#requested = requested
    this.#parts = parts
    this.#deciding = refusing < 0 ? indexOfLeast(parts) : refusing
  }

  /** @internal Whether an object is one, and neither a proxy of one nor made from its prototype. */
  static is(what: unknown): what is RemoteDecision {
    return typeof what === 'object' && what !== null && #requested in what
  }

  /** @internal */
  get parts(): readonly RemotePart[] {
    return this.#parts
  }

  /** @internal */
  get requested(): Requested {
    return this.#requested
  }

  /** @internal The index of the rule that refused, or -1 for an admission. */
  get refusing(): number {
    return this.allowed ? -1 : this.#deciding
  }

  /** @internal Whether a rule has charged something. */
  get isCharged(): boolean {
    return this.#parts.some(({ receipt }) => receipt !== undefined)
  }

  /** @internal The receipts as the store takes them: two texts for each rule. */
  get receipts(): string[] {
    return this.#parts.flatMap(({ receipt }) => receipt?.map(String) ?? ['', ''])
  }

  /** @internal Why the store has not answered, for a decision without it. */
  get cause(): unknown {
    return this.#requested.cause
  }

  /** @internal Whether its charge has been given back. */
  get isGivenBack(): boolean {
    return this.#isGivenBack
  }

  /** @internal A charge is given back once. */
  giveBack(): void {
    this.#isGivenBack = true
  }

  /** @internal Its refund has failed: it may be tried again. */
  keep(): void {
    this.#isGivenBack = false
  }

  /** @internal The same refusal `ms` later, of a cost that is as large or larger. Undefined: it has ended. */
  later(ms: number, cost: number): RemoteDecision | undefined {
    const parts = this.#parts.map((part) => ({
      ...part,
      retryAfterMs: part.allowed ? 0 : Math.max(1, part.retryAfterMs - ms),
      resetMs: Math.max(0, part.resetMs - ms),
    }))
    if (this.retryAfterMs <= ms) return undefined
    return new RemoteDecision({ ...this.#requested, cost }, this.source, parts, this.#deciding)
  }

  get rules(): readonly RuleDecision[] {
    return this.#parts
  }

  toJSON(): DecisionFields {
    return this.#withRules(jsonOf(this), ruleJsonOf)
  }

  /** The output of `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](): DecisionFields {
    return this.#withRules(fieldsOf(this), ruleFieldsOf)
  }

  /** @internal */
  protected get decidingPart(): RemotePart {
    return this.#parts[this.#deciding]!
  }

  #withRules(fields: DecisionFields, of: (part: RuleDecision) => RuleDecision): DecisionFields {
    return this.#parts.length === 1 ? fields : { ...fields, rules: this.#parts.map(of) }
  }
}
