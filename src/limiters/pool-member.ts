import type { Decision } from '../core/decision.js'
import { Outcome } from '../core/inline-decision.js'
import { type RulePart, type RulesDecision, shadowedRules } from '../core/rules-decision.js'
import { countedOf } from '../core/unit-decision.js'
import { unitsBetween } from '../core/units.js'
import type { Engine } from '../engines/engine.js'
import { costOf, type PoolDecision, type PoolPart } from '../engines/pool/pool-decision.js'
import { BaseMember, type GroupMember, type MemberParts, type MemberRequest } from './group-member.js'

/** A decision of a pool. With several rules, each part is like the decision of one rule. */
type Decided = PoolPart | RulesDecision<PoolPart>

/**
 * A limiter whose decisions run on a pool. The workers decide, and this thread does everything else on the
 * same counts.
 */
export class PoolMember extends BaseMember implements GroupMember {
  readonly #inline: Engine<RulePart> | Engine<RulesDecision>
  readonly #send: (request: MemberRequest) => Promise<Decision>

  constructor(
    parts: MemberParts,
    inline: Engine<RulePart> | Engine<RulesDecision>,
    send: (request: MemberRequest) => Promise<Decision>,
  ) {
    super(parts)
    this.#inline = inline
    this.#send = send
  }

  check(request: MemberRequest): Promise<Decision> {
    this.checkOpen()
    return this.#send(request)
  }

  peek({ lo, hi, cost, limit }: MemberRequest): Decision {
    this.checkOpen()
    return this.#inline.peek(lo, hi, cost, limit)
  }

  undo(decision: Decision): void {
    if (this.parts.isReleased()) return
    if (!decision.allowed) {
      this.#inline.tally(0, -1)
      return
    }
    const parts = decision.rules as readonly PoolPart[]
    const isShadowed = parts.some((part) => part.isShadowed)
    this.#inline.tally(-1, 0, isShadowed ? -1 : 0)
    try {
      this.#giveBack(parts, costOf(parts), 0)
    } catch {
      // A manual clock was set to a time that is too far off: all charges have expired by then.
    }
  }

  isGivenBack(decision: Decision): boolean {
    return (decision as Decided).isGivenBack
  }

  giveBack(decision: Decision): number {
    return 0 - this.change(decision, costOf(decision.rules as readonly PoolPart[]), 0)
  }

  change(decision: Decision, cost: number, actualCost: number): number {
    this.checkOpen()
    const { lo, hi } = decision as Decided
    if (actualCost > cost) {
      return this.#inline.changes.chargeMore(lo, hi, cost, actualCost, shadowedRules(decision))
    }
    const given = this.#giveBack(decision.rules as readonly PoolPart[], cost, actualCost)
    this.waiters.wake(lo, hi)
    return 0 - given
  }

  /** Reduces a charge of `cost` to `actualCost`. Returns the most units that any rule gave back. */
  #giveBack(parts: readonly PoolPart[], cost: number, actualCost: number): number {
    const { engines } = this.parts
    // May throw. The decision can then be given back later.
    for (const { reading } of engines) reading.take()
    let most = 0
    for (const [i, part] of parts.entries()) {
      const counted = countedOf(part) as PoolDecision
      const units = unitsBetween(cost, actualCost, this.rules.units[i] ?? 1)
      if (counted.outcome !== Outcome.CHARGED || units === 0) continue
      counted.outcome = Outcome.GIVEN_BACK
      most = Math.max(most, engines[i]!.changes.takeBackFrom(counted.way, counted, units))
    }
    return most
  }
}
