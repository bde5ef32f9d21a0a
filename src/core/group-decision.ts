import { CompositeDecision } from './composite-decision.js'
import type { Decision, DecisionFields, RuleDecision } from './decision.js'
import { fieldsOf, indexOfLeast, jsonOf } from './decision-fields.js'
import type { DecisionSource } from './decision-source.js'

/**
 * The result of one request to a group: a snapshot. `limit`, `remaining`, `resetMs` and `rule` are those of
 * the member that decided, and `retryAfterMs` is for all members together.
 */
export interface GroupDecision<Name extends string = string> extends Decision {
  /**
   * The name of the member that decided. Of a refusal: the first member that refused, or the first with a
   * limit below the cost. Of an admission: the member with the smallest part of its limit left.
   */
  readonly member: Name
  /**
   * The decision of each member, by its name. If another member refused, this one charged nothing. `allowed`
   * then says whether this member alone would have admitted the request, and the figures are those without
   * the charge.
   */
  readonly members: Readonly<Record<Name, Decision>>
  /** The figures of each rule of each member, in the order of the members. `toJSON` leaves them out. */
  readonly rules: readonly RuleDecision[]
  /**
   * Returns all fields as plain data, for `JSON.stringify`, `structuredClone` and `postMessage`. The fields
   * are those of a decision of one rule, `member`, and `members` with the fields of each member's decision.
   * `Infinity` becomes `Number.MAX_SAFE_INTEGER`.
   * @returns a new object
   * @example
   * ```ts
   * console.log(JSON.stringify(logins.check({ account: 'alice', address: '192.0.2.1' })))
   * ```
   */
  toJSON(): GroupDecisionFields<Name>
}

/** A {@link GroupDecision} as plain data. */
export interface GroupDecisionFields<Name extends string = string> extends Omit<DecisionFields, 'rules'> {
  /** The name of the member that decided. */
  readonly member: Name
  /** The fields of each member's decision. */
  readonly members: Readonly<Record<Name, DecisionFields>>
}

/** The index of the deciding member before it is known. */
const UNKNOWN = -1

/**
 * A decision of a group. Each part is the decision of one member, and computes its figures when they are
 * read. The decision's own properties are `allowed` and `members`, and a copy has only these.
 */
export class MembersDecision extends CompositeDecision<Decision> implements GroupDecision {
  readonly allowed: boolean
  readonly members: Readonly<Record<string, Decision>>
  readonly #group: object
  readonly #names: readonly string[]
  readonly #parts: readonly Decision[]
  /** The index of the member that decided. For an admission it is computed when it is read. */
  #deciding: number

  /** @param refusing the index of the member that refused, or -1 for an admission */
  constructor(group: object, names: readonly string[], parts: readonly Decision[], refusing: number) {
    super()
    this.allowed = refusing < 0
    this.members = byName(names, parts)
    this.#group = group
    this.#names = names
    this.#parts = parts
    this.#deciding = refusing < 0 ? UNKNOWN : refusing
  }

  /** @internal Not one that only inherits from a decision, or is a proxy of one. */
  static is(what: unknown): what is MembersDecision {
    return typeof what === 'object' && what !== null && #group in what
  }

  /** @internal The group that decided. */
  get group(): object {
    return this.#group
  }

  get parts(): readonly Decision[] {
    return this.#parts
  }

  get member(): string {
    return this.#names[this.#decidingIndex()]!
  }

  /** One call decides all members, so they have the same source. */
  get source(): DecisionSource | undefined {
    return this.#parts[0]!.source
  }

  /** @internal Why the store has not answered, for a decision without it. */
  get cause(): unknown {
    return (this.#parts[0] as { readonly cause?: unknown }).cause
  }

  get rules(): readonly RuleDecision[] {
    return this.#parts.flatMap(({ rules }) => rules)
  }

  toJSON(): GroupDecisionFields {
    const members = this.#names.map((name, i) => [name, this.#parts[i]!.toJSON()] as const)
    return { ...jsonOf(this), member: this.member, members: Object.fromEntries(members) }
  }

  /** The output of `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](): object {
    return { ...fieldsOf(this), member: this.member, members: this.members }
  }

  protected get decidingPart(): Decision {
    return this.#parts[this.#decidingIndex()]!
  }

  #decidingIndex(): number {
    if (this.#deciding === UNKNOWN) this.#deciding = indexOfLeast(this.#parts)
    return this.#deciding
  }
}

/** The parts by the names of their members. `Object.fromEntries` takes several times as long. */
function byName(names: readonly string[], parts: readonly Decision[]): Record<string, Decision> {
  const members: Record<string, Decision> = {}
  for (let i = 0; i < names.length; i++) {
    const name = names[i]!
    if (name === '__proto__') return Object.fromEntries(names.map((each, j) => [each, parts[j]!]))
    members[name] = parts[i]!
  }
  return members
}
