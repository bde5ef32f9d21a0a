import type { Decision, RuleDecision } from './decision.js'
import { isUndecided } from './decision-source.js'
import type { MembersDecision } from './group-decision.js'
import { InlineDecision, Outcome } from './inline-decision.js'
import { KnownDecision } from './known-decision.js'
import { NEAR_LIMIT } from './near-limit.js'
import type { RulePart } from './rules-decision.js'
import { verdictOf, wasEnforced } from './verdict.js'

/** Decisions by what came of them. The names mean the same wherever Millrace counts. */
export interface Counts {
  /** Admitted, also without a charge. */
  readonly admitted: number
  /** Refused because a rule had no room or the key was blocked. Not: because a store did not answer. */
  readonly refused: number
  /** Of `admitted`: those that a rule, or a middleware, would have refused if it were enforced. */
  readonly shadowRefused: number
  /** Of `refused`: those of a key that was blocked or banned. */
  readonly blocked: number
}

/** Decisions of which the figures are known. */
export interface FigureCounts extends Counts {
  /**
   * Of `admitted`: those that charged a key and left it with 80 % of a limit used, or more (the option `nearLimit`).
   */
  readonly nearLimit: number
}

/** Decisions that were made without the store, by what became of them. */
export interface WithoutStore {
  /** Admitted by `onOutage: 'open'`, or by a rule that is not enforced. */
  readonly open: number
  /** Refused by `onOutage: 'closed'`, or because `'local'` has no share for them. They are not in `refused`. */
  readonly closed: number
  /** Decided by this process's share of the limits. They are in `admitted` or `refused`, too. */
  readonly local: number
}

/** The counts of a limiter, a group or a route, and those of each of its rules. */
export interface RuleCounts<C extends Counts = FigureCounts> {
  /**
   * By the names of the rules. A rule has admitted what all have admitted, and refused what was refused in its name
   * (`decision.rule`).
   */
  readonly rules: Readonly<Record<string, C>>
}

/** The counts of a rule in this thread. */
class Tallies {
  readonly rule: string
  admitted = 0
  refused = 0
  shadowRefused = 0
  blocked = 0
  nearLimit = 0

  constructor(rule: string) {
    this.rule = rule
  }

  present(): FigureCounts {
    const { admitted, refused, shadowRefused, blocked, nearLimit } = this
    return { admitted, refused, shadowRefused, blocked, nearLimit }
  }

  addAll({ admitted, refused, shadowRefused, blocked, nearLimit }: FigureCounts): void {
    this.admitted += admitted
    this.refused += refused
    this.shadowRefused += shadowRefused
    this.blocked += blocked
    this.nearLimit += nearLimit
  }

  add(isAllowed: boolean, isShadowed: boolean, isBlocked: boolean, isNear: boolean): void {
    if (isAllowed) {
      this.admitted++
      if (isShadowed) this.shadowRefused++
      if (isNear) this.nearLimit++
    } else {
      this.refused++
      if (isBlocked) this.blocked++
    }
  }
}

/** Whether the verdict of a rule is that its key is blocked, as far as its decision says so. */
export const isBlocked = (part: Partial<Decision> & { readonly isBlocked?: boolean }): boolean =>
  part.isBlocked === true || (part.rules ?? []).some((rule) => rule !== part && isBlocked(rule))

/** Whether a rule has charged an admission, as far as its decision says so. */
function isCharged(decision: Decision, part: Partial<RulePart>): boolean {
  if (part.outcome !== undefined) return part.outcome === Outcome.CHARGED
  const requested = KnownDecision.is(decision)
    ? (decision.requested as { readonly cost?: number })
    : undefined
  return verdictOf(part as RuleDecision).allowed && requested?.cost !== 0
}

/** A decision of a drop-in. */
export interface Hit {
  readonly allowed: boolean
  /** What the key has used of its limit. */
  readonly hits: number
  /** Whether it was refused because the key was blocked. */
  readonly isBlocked?: boolean
}

/** What becomes of a refusal: one that counts, a request that passes all the same, or one that waits. */
export type Refusal = 'decided' | 'passed' | 'delayed'

/** Counts decisions where they are made known: of a limiter on a server, a group, a route of a middleware. */
export class DecisionCounts {
  readonly #all = new Tallies('')
  readonly #rules: Tallies[] = []
  readonly #withoutStore = { open: 0, closed: 0, local: 0 }
  readonly #nearLimit: number

  /** @param nearLimit from this share of its limit on, a key is near it */
  constructor(nearLimit: number = NEAR_LIMIT) {
    this.#nearLimit = nearLimit
  }

  /**
   * Counts a decision.
   * @param as what becomes of a refusal in a middleware: nothing if it is not enforced, a wait with `delay`
   * @param isBanned whether a refusal is known to be that of a banned key
   * @returns whether it is one of `shadowRefused`
   */
  count(decision: Decision, as: Refusal = 'decided', isBanned = false): boolean {
    const { allowed } = decision
    if (allowed && InlineDecision.is(decision) && wasEnforced(decision)) return this.#countAdmission(decision)
    const { rules } = decision
    const isNear = (rule: number) => this.#isNear(decision, rules[rule]!)
    return this.#count(decision, rules, allowed ? undefined : decision.rule, as, isBanned, isNear)
  }

  /** The usual case, without an object: an admission in memory by one rule that is enforced. */
  #countAdmission(decision: InlineDecision): false {
    const isNear = this.#isNear(decision, decision)
    this.#ofRule(decision.rule).add(true, false, false, isNear)
    this.#all.add(true, false, false, isNear)
    return false
  }

  /** Counts a decision of a group like {@link count}, by the names of its members in place of rules. */
  countOfMembers(
    decision: MembersDecision,
    names: readonly string[],
    isNear: (member: number) => boolean,
    as: Refusal = 'decided',
  ): boolean {
    const refusing = decision.allowed ? undefined : decision.member
    return this.#count(decision, decision.parts, refusing, as, false, isNear, names)
  }

  /** Bits of the rules that an admission has charged, and to whose limits it has left the key near. */
  nearRules(decision: Decision): number {
    if (!decision.allowed || isUndecided(decision.source)) return 0
    return decision.rules.reduce(
      (near, part, i) => (this.#isNear(decision, part) ? near | (1 << i) : near),
      0,
    )
  }

  #isNear(decision: Decision, part: RuleDecision): boolean {
    const { limit, remaining } = part
    return (limit - remaining) / limit >= this.#nearLimit && isCharged(decision, part)
  }

  /** @param refusing the name of the rule that refused */
  #count(
    { allowed, source }: Decision,
    rules: readonly RuleDecision[],
    refusing: string | undefined,
    as: Refusal,
    isBanned: boolean,
    isNear: (index: number) => boolean,
    names?: readonly string[],
  ): boolean {
    const passes = allowed || as !== 'decided'
    if (isUndecided(source)) {
      this.#withoutStore[passes ? 'open' : 'closed']++
      if (passes) this.#all.admitted++
      return false
    }
    if (source === 'local') this.#withoutStore.local++
    let [hasShadowed, hasBlocked, hasNear] = [false, false, false]
    for (let i = 0; i < rules.length; i++) {
      const part = rules[i]!
      const rule = names?.[i] ?? part.rule
      const refuses = rule === refusing
      if (!passes && !refuses) continue
      const isShadowed = allowed ? !verdictOf(part).allowed : refuses && as === 'passed'
      const leavesNear = passes && isNear(i)
      const blocks = !passes && (isBanned || isBlocked(part))
      this.#ofRule(rule, i).add(passes, isShadowed, blocks, leavesNear)
      hasShadowed ||= isShadowed
      hasBlocked ||= blocks
      hasNear ||= leavesNear
    }
    this.#all.add(passes, hasShadowed, hasBlocked, hasNear)
    return hasShadowed
  }

  /** Counts a decision of which the numbers are known. */
  countHit(rule: string, { allowed, hits, isBlocked = false }: Hit, limit: number): void {
    const isNear = allowed && hits / limit >= this.#nearLimit
    for (const tallies of [this.#all, this.#ofRule(rule)]) tallies.add(allowed, false, isBlocked, isNear)
  }

  /** Counts what came of the keys of a batch, by what the worker has counted: of all, and in the name of each rule. */
  countBatch(
    keys: number,
    all: Omit<FigureCounts, 'admitted'>,
    rules: readonly string[],
    ofRules: readonly Omit<FigureCounts, 'admitted'>[],
  ): void {
    const admitted = keys - all.refused
    this.#all.addAll({ ...all, admitted })
    for (const [i, rule] of rules.entries()) this.#ofRule(rule, i).addAll({ ...ofRules[i]!, admitted })
  }

  get withoutStore(): WithoutStore {
    return { ...this.#withoutStore }
  }

  present(): FigureCounts & RuleCounts {
    const rules = this.#rules.map((tallies) => [tallies.rule, tallies.present()])
    return { ...this.#all.present(), rules: Object.fromEntries(rules) }
  }

  /** @param index where the rule usually is */
  #ofRule(rule: string, index = 0): Tallies {
    const usual = this.#rules[index]
    if (usual?.rule === rule) return usual
    let found = this.#rules.find((each) => each.rule === rule)
    if (found === undefined) {
      found = new Tallies(rule)
      this.#rules.push(found)
    }
    return found
  }
}
