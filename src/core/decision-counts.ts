import type { Decision, RuleDecision } from './decision.js'
import { isUndecided } from './decision-source.js'
import type { MembersDecision } from './group-decision.js'
import { InlineDecision } from './inline-decision.js'
import { NEAR_LIMIT } from './near-limit.js'
import { UnitDecision } from './unit-decision.js'
import { verdictOf } from './verdict.js'

/** Decisions by what came of them. The names mean the same wherever Millrace counts. */
export interface Counts {
  /** Admitted, also without a charge. */
  readonly admitted: number
  /** Refused because a rule had no room or the key was blocked. Not: because a store did not answer. */
  readonly refused: number
  /** Of `admitted`: those that a rule, or a middleware, would have refused if it were enforced. */
  readonly shadowRefused: number
  /** Of `refused`: those of a key that was blocked or banned. Not known of decisions of a pool. */
  readonly blocked: number
}

/** Decisions of which the figures are known. */
export interface FigureCounts extends Counts {
  /** Of `admitted`: those that left a key with 80 % of a limit used, or more (the option `nearLimit`). Not known of keys of `checkMany`. */
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
export const isBlocked = (part: Partial<Decision> & { readonly isBlocked?: boolean }): boolean => {
  const counted = UnitDecision.is(part) ? part.counted : part
  if (InlineDecision.is(counted)) return counted.until !== undefined
  return part.isBlocked === true || (part.rules ?? []).some((rule) => rule !== part && isBlocked(rule))
}

/** What becomes of a refusal: one that counts, a request that passes all the same, or one that waits. */
export type Refusal = 'decided' | 'passed' | 'delayed'

/** Counts decisions where they are made known: of a limiter on a server, a group, a route of a middleware. */
export class DecisionCounts {
  readonly #all = new Tallies('')
  readonly #rules: Tallies[] = []
  readonly #withoutStore = { open: 0, closed: 0, local: 0 }
  readonly #nearLimit: number

  /** @param nearLimit above this share of its limit, a key is near it; `Infinity`: figures are not read */
  constructor(nearLimit: number = NEAR_LIMIT) {
    this.#nearLimit = nearLimit
  }

  /**
   * Counts a decision.
   * @param as what becomes of a refusal in a middleware: nothing if it is not enforced, a wait with `delay`
   * @param isBanned whether a refusal is known to be that of a banned key
   */
  count(decision: Decision, as: Refusal = 'decided', isBanned = false): void {
    this.#count(decision, decision.rules, decision.allowed ? undefined : decision.rule, as, isBanned)
  }

  /** Counts a decision of a group, by the names of its members in place of rules. */
  countOfMembers(decision: MembersDecision, names: readonly string[]): void {
    this.#count(
      decision,
      decision.parts,
      decision.allowed ? undefined : decision.member,
      'decided',
      false,
      names,
    )
  }

  /** @param refusing the name of the rule that refused */
  #count(
    { allowed, source }: Decision,
    rules: readonly RuleDecision[],
    refusing: string | undefined,
    as: Refusal,
    isBanned: boolean,
    names?: readonly string[],
  ): void {
    const passes = allowed || as !== 'decided'
    if (isUndecided(source)) {
      this.#withoutStore[passes ? 'open' : 'closed']++
      if (passes) this.#all.admitted++
      return
    }
    if (source === 'local') this.#withoutStore.local++
    let [hasShadowed, hasBlocked, hasNear] = [false, false, false]
    for (let i = 0; i < rules.length; i++) {
      const part = rules[i]!
      const rule = names?.[i] ?? part.rule
      const refuses = rule === refusing
      if (!passes && !refuses) continue
      const isShadowed = allowed ? !verdictOf(part).allowed : refuses && as === 'passed'
      const isNear =
        passes && this.#nearLimit <= 1 && (part.limit - part.remaining) / part.limit >= this.#nearLimit
      const blocks = !passes && (isBanned || isBlocked(part))
      this.#ofRule(rule, i).add(passes, isShadowed, blocks, isNear)
      hasShadowed ||= isShadowed
      hasBlocked ||= blocks
      hasNear ||= isNear
    }
    this.#all.add(passes, hasShadowed, hasBlocked, hasNear)
  }

  /**
   * Counts what came of the keys of a batch, whose figures are not known. Of several rules, it is not known either which
   * one has refused.
   */
  countBatch(allowed: Uint8Array, rules: readonly string[]): void {
    let admitted = 0
    for (let i = 0; i < allowed.length; i++) admitted += allowed[i]!
    const refused = allowed.length - admitted
    this.#all.admitted += admitted
    this.#all.refused += refused
    for (const [i, rule] of rules.entries()) {
      const tallies = this.#ofRule(rule, i)
      tallies.admitted += admitted
      if (rules.length === 1) tallies.refused += refused
    }
  }

  get withoutStore(): WithoutStore {
    return { ...this.#withoutStore }
  }

  /** Without what is not counted if figures are not read. */
  presentCounts(): Counts & RuleCounts<Counts> {
    const { nearLimit: _, rules, ...counts } = this.present()
    const own = Object.entries(rules).map(([name, { nearLimit: __, ...each }]) => [name, each])
    return { ...counts, rules: Object.fromEntries(own) }
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
