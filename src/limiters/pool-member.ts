import type { Decision } from '../core/decision.js'
import type { DecisionCounts } from '../core/decision-counts.js'
import { Outcome } from '../core/inline-decision.js'
import { hasOutcome, type RulePart, type RulesDecision, shadowedRules } from '../core/rules-decision.js'
import type { Engine } from '../engines/engine.js'
import type { PoolDecision } from '../engines/pool/pool-decision.js'
import { BaseMember, type GroupMember, type MemberRequest } from './group-member.js'
import type { MemoryBackend } from './memory-backend.js'

/**
 * A limiter whose decisions run on a pool. The workers decide, and this thread does everything else on the
 * same counts.
 */
export class PoolMember extends BaseMember implements GroupMember {
  readonly #inline: Engine<RulePart> | Engine<RulesDecision>
  readonly #send: (request: MemberRequest) => Promise<Decision>
  readonly #counts: DecisionCounts

  constructor(
    name: string,
    backend: MemoryBackend,
    inline: Engine<RulePart> | Engine<RulesDecision>,
    send: (request: MemberRequest) => Promise<Decision>,
    counts: DecisionCounts,
  ) {
    super(name, backend)
    this.#inline = inline
    this.#send = send
    this.#counts = counts
  }

  async check(request: MemberRequest): Promise<Decision> {
    this.checkOpen()
    const decision = await this.#send(request)
    request.near = this.#counts.nearRules(decision)
    return decision
  }

  peek({ lo, hi, cost, limit }: MemberRequest): Decision {
    this.checkOpen()
    return this.#inline.peek(lo, hi, cost, limit)
  }

  undo(decision: Decision, { near }: MemberRequest): void {
    if (this.backend.isReleased) return
    this.#inline.uncount(decision, near)
    if (!decision.allowed) return
    try {
      this.#giveBack(decision)
    } catch {
      // A manual clock was set to a time that is too far off: all charges have expired by then.
    }
  }

  giveBack(decision: Decision): number {
    return this.#giveBackAndWake(decision)
  }

  change(decision: Decision, cost: number, actualCost: number): number {
    if (actualCost <= cost) return 0 - this.#giveBackAndWake(decision, cost - actualCost)
    this.checkOpen()
    const { lo, hi } = partsOf(decision)[0]!.charge
    return this.#inline.changes.chargeMore(lo, hi, cost, actualCost, shadowedRules(decision))
  }

  #giveBackAndWake(decision: Decision, cost?: number): number {
    this.checkOpen()
    if (!hasOutcome(decision, Outcome.CHARGED)) return 0 // perhaps a peek of this thread
    const given = this.#giveBack(decision, cost)
    const { lo, hi } = partsOf(decision)[0]!.charge
    this.waiters.wake(lo, hi)
    return given
  }

  /** Gives back the charge of a part of the cost, or of all of it. Returns the most units that any rule gave back. */
  #giveBack(decision: Decision, cost?: number): number {
    const { engines } = this.backend
    // May throw. The decision can then be given back later.
    for (const { reading } of engines) reading.take()
    let most = 0
    for (const [i, part] of partsOf(decision).entries()) {
      const units = part.unitsOf(cost)
      if (!units) continue
      part.outcome = Outcome.GIVEN_BACK
      most = Math.max(most, engines[i]!.changes.takeBackFrom(part.charge.way, part.charge, units))
    }
    return most
  }
}

const partsOf = ({ rules }: Decision): readonly PoolDecision[] => rules as readonly PoolDecision[]
