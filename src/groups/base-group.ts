import {
  checkCost,
  checkOptions,
  checkSignal,
  foreignDecisionError,
  neverAdmittedError,
} from '../api/checks.js'
import type { GroupKeys, GroupOptions, GroupStats, GroupWaitOptions } from '../api/limiter-group.js'
import type { Reserved } from '../api/reservation.js'
import { hearsRefusals, publishRefusal } from '../core/channels.js'
import type { Decision } from '../core/decision.js'
import { DecisionCounts } from '../core/decision-counts.js'
import { MillraceError } from '../core/errors.js'
import { MembersDecision } from '../core/group-decision.js'
import { Outcome } from '../core/inline-decision.js'
import { type Inspect, inspectAs } from '../core/inspect.js'
import type { Signal } from '../core/on-abort.js'
import { Refusals } from '../core/refusals.js'
import { hasOutcome } from '../core/rules-decision.js'
import { verdictOf } from '../core/verdict.js'
import type { GroupMember, MemberRequest } from '../limiters/group-member.js'
import { GroupQueues } from './group-queues.js'

/** The checked arguments of one call: a request to each member, in order. */
export type Requests = readonly MemberRequest[]

/** The same requests, whose refusals no rule charges: a cost above the limit of one member is charged in none. */
export const uncounted = (requests: Requests): Requests =>
  requests.map((request) => ({ ...request, isAttempt: true }))

/**
 * The part of a group that decides nothing: it checks arguments, peeks, waits and gives back. A decision
 * charges the members in order. If one refuses, the members before it take their charges back, and all others
 * are peeked at. Those of them with `countRefused` charge what they refuse, too. Until then other decisions see these charges. So two requests at the same time may both be
 * refused, although one of them would fit alone. No limit is exceeded: each member admits by itself.
 */
export abstract class BaseGroup {
  readonly #own: readonly GroupMember[]
  readonly #names: readonly string[]
  readonly #kind: string
  readonly #counts = new DecisionCounts()
  readonly #queues = new GroupQueues<MembersDecision>()
  readonly #refusals = new Refusals()

  constructor(kind: string, members: readonly GroupMember[]) {
    this.#kind = kind
    this.#names = members.map(({ name }) => name)
    this.#own = members
    defineNotShared(this)
  }

  protected get refusals(): Refusals {
    return this.#refusals
  }

  protected get own(): readonly GroupMember[] {
    return this.#own
  }

  /** Decides and charges. */
  protected abstract decide(requests: Requests): MembersDecision | Promise<MembersDecision>

  /** Checks the arguments of a call, before anything is charged. @throws MillraceError */
  protected requestsFor(keys: GroupKeys, cost: unknown, options: GroupOptions | undefined): Requests {
    checkCost(cost)
    if (options !== undefined) checkOptions(options, ['limit'])
    return this.#requests(keys, cost, options?.limit, false)
  }

  protected peekAll(requests: Requests): MembersDecision {
    const peeks = this.own.map((member, i) => member.peek(requests[i]!))
    const below = this.indexOfLimitBelow(requests, peeks)
    return this.#decisionOf(peeks, below >= 0 ? below : peeks.findIndex(({ allowed }) => !allowed))
  }

  /**
   * The index of the first member with a limit below the cost, or -1. That member decides alone, and refuses.
   * With `peeks`, only a member that has refused counts: a limit may have been raised meanwhile.
   */
  protected indexOfLimitBelow(requests: Requests, peeks?: readonly Decision[]): number {
    if (requests[0]!.cost <= 1) return -1 // no limit is lower
    return this.own.findIndex(
      (member, i) => peeks?.[i]?.allowed !== true && member.isAboveLimit(requests[i]!),
    )
  }

  /** The decision of a request that all members admitted. */
  protected admission(requests: Requests, parts: readonly Decision[]): MembersDecision {
    return this.#counted(requests, this.#decisionOf(parts, -1))
  }

  /** The decision of a request that one member refused. Peeks at all others. */
  protected refusal(requests: Requests, refusing: number, refused: Decision): MembersDecision {
    const parts = this.own.map((member, i) => (i === refusing ? refused : member.peek(requests[i]!)))
    return this.#counted(requests, this.#decisionOf(parts, refusing))
  }

  /** The counts of this group. */
  protected get counts(): GroupStats {
    return statsOf(this.#counts)
  }

  #counted(requests: Requests, decision: MembersDecision): MembersDecision {
    this.#counts.countOfMembers(decision, this.#names, (member) => requests[member]!.near !== 0)
    return decision
  }

  /** The later members with `countRefused` that refuse a request, too: each charges what it refuses itself. */
  protected laterCounting(requests: Requests, refusing: number): number[] {
    const counts = (member: GroupMember, request: MemberRequest): boolean => {
      if (!member.countsRefused || request.isAttempt) return false
      return !verdictOf(member.peek(request)).allowed
    }
    return this.own.flatMap((member, i) => (i > refusing && counts(member, requests[i]!) ? [i] : []))
  }

  /** Takes back the admissions of the first members. */
  protected undo(requests: Requests, admitted: readonly Decision[]): void {
    for (const [i, part] of admitted.entries()) this.own[i]!.undo(part, requests[i]!)
  }

  /** Returns the most units that any member gave back: the charge may have left the window of another. */
  protected giveBack(decision: unknown): number {
    const parts = this.#partsOf(decision)
    for (const member of this.own) member.checkOpen()
    return Math.max(...this.own.map((member, i) => member.giveBack(parts[i]!)))
  }

  /** The charge of a decision, for a reservation. */
  protected reserved(decision: MembersDecision, cost: number): Reserved<number, MembersDecision> {
    const { parts } = decision
    // If a clock fails, some members are settled already. The next call settles the others.
    const changes = new Map<number, number>()
    return {
      decision,
      cost,
      isGivenBack: () =>
        this.own.some((_, i) => !changes.has(i) && hasOutcome(parts[i]!, Outcome.GIVEN_BACK)),
      mostMore: Math.min(...this.own.map(({ mostMore }) => mostMore)),
      change: (actualCost) => {
        for (const member of this.own) member.checkOpen()
        for (const [i, member] of this.own.entries()) {
          if (!changes.has(i)) changes.set(i, member.change(parts[i]!, cost, actualCost))
        }
        return actualCost > cost ? Math.max(...changes.values()) : Math.min(...changes.values())
      },
    }
  }

  protected async waitFor(keys: GroupKeys, options: GroupWaitOptions = {}): Promise<MembersDecision> {
    checkOptions(options, ['cost', 'signal', 'limit'])
    const { cost = 1, limit } = options
    const { signal } = options as { signal?: Signal }
    checkSignal(signal)
    checkCost(cost)
    const requests = this.#requests(keys, cost, limit, true)
    const awaited = this.own.map(({ waiters }, i) => ({ waiters, ...requests[i]! }))
    const rules = () => this.own.flatMap((member, i) => member.rulesFor(requests[i]!))
    const request = {
      decide: () => this.#attempt(requests),
      giveBack: ({ parts }: MembersDecision) => this.#undoAndWake(requests, parts),
      neverError: () => neverAdmittedError(cost, rules()),
    }
    const timerMs = ({ parts }: MembersDecision) => {
      // A manual clock wakes the queue when it moves.
      const ms = Math.max(...parts.map((part, i) => (awaited[i]!.waiters.isManual ? 0 : part.retryAfterMs)))
      return ms > 0 ? ms : undefined
    }
    return this.#queues.wait(awaited, request, timerMs, signal)
  }

  /** The value for `JSON.stringify`. */
  toJSON(): object {
    return { members: this.#names }
  }

  /** The text for `console.log`. */
  [Symbol.for('nodejs.util.inspect.custom')](_: number, options: object, inspect: Inspect): string {
    return inspectAs(this.#kind, { members: this.#names }, options, inspect)
  }

  /** Charges only what fits all members: other `wait` calls would see charges that are taken back. */
  #attempt(requests: Requests): MembersDecision | Promise<MembersDecision> {
    const peeked = this.peekAll(requests)
    return peeked.allowed ? this.decide(requests) : peeked
  }

  #undoAndWake(requests: Requests, admitted: readonly Decision[]): void {
    this.undo(requests, admitted)
    this.wake(requests)
  }

  /** Wakes the pending calls of these keys: charges that are now taken back may have refused them. */
  protected wake(requests: Requests): void {
    for (const [i, { waiters }] of this.own.entries()) waiters.wake(requests[i]!.lo, requests[i]!.hi)
  }

  #decisionOf(parts: readonly Decision[], refusing: number): MembersDecision {
    return new MembersDecision(this, this.#names, parts, refusing)
  }

  #requests(keys: GroupKeys, cost: number, limit: unknown, isAttempt: boolean): Requests {
    const names = this.#names
    checkMemberKeys(keys, names)
    if (limit !== undefined) checkOptions(limit, names, 'limit')
    const limits = limit as Record<string, unknown> | undefined
    const requests = this.own.map((member) =>
      member.request(keys[member.name]!, cost, limits?.[member.name], isAttempt),
    )
    // After all keys and limits are read: a getter may have closed a limiter.
    for (const member of this.own) member.checkOpen()
    return requests
  }

  #partsOf(decision: unknown): readonly Decision[] {
    if (MembersDecision.is(decision) && decision.group === this) return decision.parts
    throw foreignDecisionError(decision, 'group')
  }
}

/** Publishes a refusal of a group where somebody hears it, with the key of the member that refused. */
export function told(decision: MembersDecision, keys: GroupKeys, refusals: Refusals): MembersDecision {
  if (decision.allowed || !hearsRefusals()) return decision
  return publishRefusal(decision, keys[decision.member], refusals, decision.member)
}

/** The counts of a group. */
export function statsOf(counts: DecisionCounts): GroupStats {
  const { rules, ...own } = counts.present()
  return { own: { ...own, members: rules } }
}

/** Checks that only members have keys. @throws MillraceError `ERR_MILLRACE_INVALID_KEY` */
export function checkMemberKeys(keys: unknown, names: readonly string[]): void {
  if (typeof keys !== 'object' || keys === null) {
    const expected = `an object with a key for each member: ${names.join(', ')}`
    throw new MillraceError('ERR_MILLRACE_INVALID_KEY', 'keys', keys, expected)
  }
  for (const name of Object.keys(keys)) {
    if (!names.includes(name)) {
      throw new MillraceError('ERR_MILLRACE_INVALID_KEY', 'keys', name, `only ${names.join(', ')}`)
    }
  }
}

/** `structuredClone` and `postMessage` of a group read an own property, and throw what it throws. */
export function defineNotShared(group: object): void {
  Object.defineProperty(group, 'share', { enumerable: true, get: () => throwNotShared(group) })
}

function throwNotShared(group: object): never {
  const expected =
    'its members one by one, because a group is not shared between threads: send limiter.share() of each ' +
    'member, attach them in the other thread by attachLimiter, and join them there by group()'
  throw new MillraceError('ERR_MILLRACE_INVALID_SHARE', 'group', group, expected)
}
