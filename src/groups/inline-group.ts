import type {
  GroupKeys,
  GroupOptions,
  GroupStats,
  GroupWaitOptions,
  LimiterGroup,
} from '../api/limiter-group.js'
import { InlineReservation, type Reservation } from '../api/reservation.js'
import type { Decision } from '../core/decision.js'
import type { MembersDecision } from '../core/group-decision.js'
import { admitted } from '../core/limited.js'
import type { TopOptions } from '../core/refusals.js'
import type { TopKey } from '../core/top-keys.js'
import type { GroupMember } from '../limiters/group-member.js'
import { BaseGroup, type Requests, told, uncounted } from './base-group.js'

/** A group whose members all decide on the calling thread. */
export class InlineGroup extends BaseGroup implements LimiterGroup {
  /** @internal */
  constructor(members: readonly GroupMember[]) {
    super('LimiterGroup', members)
  }

  check(keys: GroupKeys, cost = 1, options?: GroupOptions): MembersDecision {
    return told(this.decide(this.requestsFor(keys, cost, options)), keys, this.refusals)
  }

  checkOrThrow(keys: GroupKeys, cost?: number, options?: GroupOptions): MembersDecision {
    return admitted(this.check(keys, cost, options))
  }

  peek(keys: GroupKeys, cost = 1, options?: GroupOptions): MembersDecision {
    return this.peekAll(this.requestsFor(keys, cost, options))
  }

  reserve(keys: GroupKeys, cost: number, options?: GroupOptions): Reservation<MembersDecision> {
    const decision = told(this.decide(this.requestsFor(keys, cost, options)), keys, this.refusals)
    return new InlineReservation(this.reserved(decision, cost))
  }

  wait(keys: GroupKeys, options?: GroupWaitOptions): Promise<MembersDecision> {
    return this.waitFor(keys, options)
  }

  refund(decision: MembersDecision): number {
    return this.giveBack(decision)
  }

  top(options: TopOptions): TopKey[] {
    return this.refusals.top(options)
  }

  stats(): GroupStats {
    return this.counts
  }

  /** The steps of `AsyncGroup.decide`. Promises would take longer than the decisions. */
  protected decide(requests: Requests): MembersDecision {
    const below = this.indexOfLimitBelow(requests)
    if (below >= 0) {
      const alone = uncounted(requests)
      const part = this.#check(alone, below)
      if (!part.allowed) return this.refusal(requests, below, part)
      this.own[below]!.undo(part, alone[below]!) // another thread has raised the limit
    }
    const parts: Decision[] = []
    let part: Decision | undefined
    try {
      while (parts.length < requests.length) {
        part = this.#check(requests, parts.length)
        if (!part.allowed) break
        parts.push(part)
      }
    } catch (error) {
      this.undo(requests, parts)
      throw error
    }
    if (parts.length === requests.length) return this.admission(requests, parts)
    this.undo(requests, parts)
    // The member that refused first is the one that counts the refusal.
    for (const i of this.laterCounting(requests, parts.length))
      this.own[i]!.undo(this.#check(requests, i), requests[i]!)
    return this.refusal(requests, parts.length, part!)
  }

  #check(requests: Requests, index: number): Decision {
    return this.own[index]!.check(requests[index]!) as Decision
  }
}
