import { checkCallLimit, closedError, type MostAtOnce, mostPenalty } from '../api/checks.js'
import type { Decision } from '../core/decision.js'
import { Outcome } from '../core/inline-decision.js'
import type { RulePart } from '../core/rules-decision.js'
import { countedOf } from '../core/unit-decision.js'
import { countsRefusals } from '../core/verdict.js'
import type { CallLimit, Engine, OwnDecision } from '../engines/engine.js'
import type { WaitQueues } from '../engines/waits/wait-queues.js'
import { type Key, KeyHandle } from '../memory/keys.js'
import type { MemoryBackend } from './memory-backend.js'

/** The request of one call to one member. */
export interface MemberRequest {
  readonly lo: number
  readonly hi: number
  readonly cost: number
  /** The limit of this call. */
  readonly limit: CallLimit | undefined
  /** The handle that was given as the key. */
  readonly handle: KeyHandle | undefined
  /** Whether the request is an attempt of `wait`. Its refusal is never charged. */
  readonly isAttempt: boolean
  /** Bits of the rules to whose limits the last `check` has left the key near. */
  near: number
}

/**
 * A limiter as a member of groups. All methods but `check` run on the calling thread, also for a limiter
 * whose decisions run on a pool. So a group can give back its charges at once, even if the pool is overloaded
 * or has lost its workers.
 */
export interface GroupMember {
  readonly name: string
  readonly waiters: WaitQueues
  /** @throws MillraceError `ERR_MILLRACE_CLOSED` */
  checkOpen(): void
  /** Checks a key and the limit of a call. */
  request(key: Key, cost: number, limit: unknown, isAttempt: boolean): MemberRequest
  /** Whether the cost is above the limit of an enforced rule. */
  isAboveLimit(request: MemberRequest): boolean
  /** The enforced rules, with the limits of the call. Their names begin with the name of the member. */
  rulesFor(request: MemberRequest): MostAtOnce[]
  /** Decides and charges. */
  check(request: MemberRequest): Decision | Promise<Decision>
  peek(request: MemberRequest): Decision
  /** Whether any rule has the option `countRefused`. */
  readonly countsRefused: boolean
  /** Takes back the decision of a request: the charge of an admission, and the count in the statistics. Never throws. */
  undo(decision: Decision, request: MemberRequest): void
  /** Gives back the charge of a decision. Returns how many units. */
  giveBack(decision: Decision): number
  /** The most units that the commit of a reservation may charge in addition. */
  readonly mostMore: number
  /** Changes the charge to `actualCost`. Returns the units charged in addition; below 0: given back. */
  change(decision: Decision, cost: number, actualCost: number): number
}

/** The part of a member that is the same for both engines. */
export abstract class BaseMember {
  readonly name: string
  readonly waiters: WaitQueues
  readonly mostMore: number
  protected readonly backend: MemoryBackend
  readonly #keyOption: string
  readonly #limitOption: string

  /** @param name that of the member in its group */
  constructor(name: string, backend: MemoryBackend) {
    this.backend = backend
    this.name = name
    this.#keyOption = `keys.${name}`
    this.#limitOption = `limit.${name}`
    this.mostMore = mostPenalty(backend.names)
    this.waiters = backend.waiters
  }

  checkOpen(): void {
    if (!this.backend.isOpen) throw closedError(`members.${this.name}`)
  }

  request(key: Key, cost: number, limit: unknown, isAttempt: boolean): MemberRequest {
    const ownLimit = checkCallLimit(limit, this.backend.names, this.#limitOption)
    const { lo, hi } = this.backend.keys.read(key, this.#keyOption)
    const handle = KeyHandle.is(key) ? key : undefined
    return { lo, hi, cost, limit: ownLimit, handle, isAttempt, near: 0 }
  }

  get countsRefused(): boolean {
    return this.backend.memory.arenas.some(countsRefusals)
  }

  isAboveLimit({ cost, limit }: MemberRequest): boolean {
    const { engines } = this.backend
    return engines.some(({ isShadow, limit: own }, i) => !isShadow && cost > (limitAt(limit, i) ?? own))
  }

  rulesFor({ limit }: MemberRequest): MostAtOnce[] {
    const { engines, memory } = this.backend
    const rules = engines.map((engine, i) => {
      const ownName = engines.length === 1 ? this.name : `${this.name}.${memory.names[i]}`
      return { name: ownName, limit: limitAt(limit, i) ?? engine.limit }
    })
    return rules.filter((_, i) => !engines[i]!.isShadow)
  }
}

const limitAt = (limit: CallLimit | undefined, rule: number): number | undefined =>
  typeof limit === 'number' ? limit : limit?.[rule]

/** A limiter that decides on the calling thread. */
export class InlineMember<D extends OwnDecision> extends BaseMember implements GroupMember {
  readonly #engine: Engine<D>
  readonly #change: (decision: D, cost: number, actualCost: number) => number

  constructor(
    name: string,
    backend: MemoryBackend,
    engine: Engine<D>,
    change: (decision: D, cost: number, actualCost: number) => number,
  ) {
    super(name, backend)
    this.#engine = engine
    this.#change = change
  }

  check(request: MemberRequest): Decision {
    this.checkOpen()
    if (request.isAttempt) return this.#engine.withoutCharge(() => this.#decide(request))
    return this.#decide(request)
  }

  peek({ lo, hi, cost, limit }: MemberRequest): Decision {
    this.checkOpen()
    return this.#engine.peek(lo, hi, cost, limit)
  }

  /** Takes back each charge by the reading of its decision: reading the clock might fail. */
  undo(decision: Decision, { near }: MemberRequest): void {
    const { engines, isReleased } = this.backend
    if (isReleased) return
    const charges = decision.rules as readonly RulePart[]
    for (const [i, charge] of charges.entries()) {
      if (charge.outcome !== Outcome.CHARGED) continue
      engines[i]!.reading.set(countedOf(charge).at)
      engines[i]!.changes.takeBack(charge)
    }
    this.#engine.uncount(decision, near)
  }

  giveBack(decision: Decision): number {
    this.checkOpen()
    const { lo, hi } = decision as D
    const given = this.#engine.giveBack(decision as D)
    this.waiters.wake(lo, hi)
    return given
  }

  change(decision: Decision, cost: number, actualCost: number): number {
    return this.#change(decision as D, cost, actualCost)
  }

  #decide(request: MemberRequest): D {
    const { lo, hi, cost, limit, handle } = request
    const engine = this.#engine
    const hint = handle?.way
    engine.lastNear = 0
    const decision =
      limit === undefined
        ? engine.checkNow(lo, hi, cost, hint)
        : engine.checkWithin(limit, lo, hi, cost, hint)
    request.near = engine.lastNear
    if (handle !== undefined) handle.way = decision.way
    return decision
  }
}
