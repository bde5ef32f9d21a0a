import type { Decision } from '../../core/decision.js'
import { DecisionCounts, type Refusal } from '../../core/decision-counts.js'
import type { MembersDecision } from '../../core/group-decision.js'

/** Counts the decisions of a group by the names of its members. */
export class MemberCounts extends DecisionCounts {
  readonly #names: readonly string[]
  /** One for each member, which knows when a key of it is near its limit. */
  readonly #members: readonly DecisionCounts[]

  /** @param nearLimits the option `nearLimit` of each member, in order */
  constructor(names: readonly string[], nearLimits: readonly number[]) {
    super()
    this.#names = names
    this.#members = nearLimits.map((nearLimit) => new DecisionCounts(nearLimit))
  }

  override count(decision: Decision, as: Refusal = 'decided'): boolean {
    const { parts } = decision as MembersDecision
    const isNear = (member: number) => this.#members[member]!.nearRules(parts[member]!) !== 0
    return this.countOfMembers(decision as MembersDecision, this.#names, isNear, as)
  }
}
