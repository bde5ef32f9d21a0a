import type { AsyncLimiterGroup } from '../api/async-limiter-group.js'
import type { GroupKeys, GroupOptions, GroupStats, GroupWaitOptions } from '../api/limiter-group.js'
import { type AsyncReservation, PoolReservation } from '../api/reservation.js'
import { COUNTED } from '../core/closing.js'
import type { Decision } from '../core/decision.js'
import type { MembersDecision } from '../core/group-decision.js'
import { admitted } from '../core/limited.js'
import type { TopOptions } from '../core/refusals.js'
import type { TopKey } from '../core/top-keys.js'
import type { GroupMember } from '../limiters/group-member.js'
import { BaseGroup, type Requests, told, uncounted } from './base-group.js'

/** A group with a member whose decisions run on a pool. */
export class AsyncGroup extends BaseGroup implements AsyncLimiterGroup {
  /** @internal */
  constructor(members: readonly GroupMember[]) {
    super('AsyncLimiterGroup', members)
  }

  async check(keys: GroupKeys, cost = 1, options?: GroupOptions): Promise<MembersDecision> {
    return told(await this.decide(this.requestsFor(keys, cost, options)), keys, this.refusals)
  }

  async checkOrThrow(keys: GroupKeys, cost?: number, options?: GroupOptions): Promise<MembersDecision> {
    return admitted(await this.check(keys, cost, options))
  }

  async peek(keys: GroupKeys, cost = 1, options?: GroupOptions): Promise<MembersDecision> {
    return this.peekAll(this.requestsFor(keys, cost, options))
  }

  async reserve(
    keys: GroupKeys,
    cost: number,
    options?: GroupOptions,
  ): Promise<AsyncReservation<MembersDecision>> {
    const decision = told(await this.decide(this.requestsFor(keys, cost, options)), keys, this.refusals)
    const { change, ...reserved } = this.reserved(decision, cost)
    return new PoolReservation({ ...reserved, change: async (actualCost) => change(actualCost) })
  }

  wait(keys: GroupKeys, options?: GroupWaitOptions): Promise<MembersDecision> {
    return this.waitFor(keys, options)
  }

  async refund(decision: MembersDecision): Promise<number> {
    return this.giveBack(decision)
  }

  async top(options: TopOptions): Promise<TopKey[]> {
    return this.refusals.top(options)
  }

  async stats(): Promise<GroupStats> {
    return this.counts
  }

  /** @internal */
  [COUNTED](): GroupStats {
    return this.counts
  }

  /** The steps of `InlineGroup.decide`, with decisions that are promises. */
  protected async decide(requests: Requests): Promise<MembersDecision> {
    const below = this.indexOfLimitBelow(requests)
    if (below >= 0) {
      const alone = uncounted(requests)
      const part = await this.#check(alone, below)
      if (!part.allowed) return this.refusal(requests, below, part)
      this.own[below]!.undo(part, alone[below]!) // another thread has raised the limit
    }
    const parts: Decision[] = []
    let part: Decision | undefined
    try {
      while (parts.length < requests.length) {
        part = await this.#check(requests, parts.length)
        if (!part.allowed) break
        parts.push(part)
      }
    } catch (error) {
      this.#undo(requests, parts)
      throw error
    }
    if (parts.length === requests.length) return this.admission(requests, parts)
    this.#undo(requests, parts)
    // The member that refused first is the one that counts the refusal.
    for (const i of this.laterCounting(requests, parts.length))
      this.own[i]!.undo(await this.#check(requests, i), requests[i]!)
    return this.refusal(requests, parts.length, part!)
  }

  #check(requests: Requests, index: number): Decision | Promise<Decision> {
    return this.own[index]!.check(requests[index]!)
  }

  /** Also wakes pending `wait` calls, which may have been refused because of these charges. */
  #undo(requests: Requests, admitted: readonly Decision[]): void {
    this.undo(requests, admitted)
    if (admitted.length > 0) this.wake(requests)
  }
}
