import type { LimiterGroup } from '#millrace/api/limiter-group.js'
import type { Reservation } from '#millrace/api/reservation.js'
import type { Clock } from '#millrace/core/clock.js'
import type { Decision } from '#millrace/core/decision.js'
import type { InlineDecision } from '#millrace/core/inline-decision.js'
import type { InlineLimiter } from '#millrace/limiters/inline-limiter.js'
import type { Arenas } from '#millrace/memory/arenas.js'
import type { KeyHandle } from '#millrace/memory/keys.js'
import type { Built } from './copy.js'
import type { By, Op } from './scenario.js'

/** A decision, and its parts by the indices of their rules. */
export interface Played {
  readonly decision: Decision
  readonly parts: ReadonlyMap<number, InlineDecision>
  /** The index of the rule that refused, or -1. */
  readonly refusing: number
}

type Limiter = InlineLimiter<never>
interface Fingerprint {
  readonly lo: number
  readonly hi: number
}

/**
 * Plays the operations of one thread on the limiters and groups of the package. One limiter has all rules.
 * Each rule also has a limiter of its own, a member of the groups. All of them count in the same arenas.
 */
export class LimiterPlayer {
  readonly #built: Built
  readonly #arenas: Arenas
  readonly #clock: Clock
  readonly #fingerprintOf: (key: number) => Fingerprint
  /** The limiters that the thread has used, by the index of their rule; undefined: of all rules. */
  readonly #limiters = new Map<number | undefined, Limiter>()
  readonly #groups = new Map<By, LimiterGroup>()
  readonly #made: Played[] = []
  #reservation: Reservation | undefined
  /** The group or the limiter of the last decision. */
  #giver: LimiterGroup | Limiter | undefined

  constructor(built: Built, arenas: Arenas, now: () => number, fingerprintOf: (key: number) => Fingerprint) {
    this.#built = built
    this.#arenas = arenas
    this.#clock = { now }
    this.#fingerprintOf = fingerprintOf
  }

  /** All that the thread keeps from its operations so far. */
  get state(): number[] {
    return this.#made.flatMap(({ parts }) =>
      [...parts.values()].flatMap(({ outcome, way, tick, stamp, at }) => [outcome, way, tick, stamp, at]),
    )
  }

  /** Returns the decision, if the operation makes one. */
  play(op: Op): Played | undefined {
    switch (op.do) {
      case 'check':
        return this.#note(this.#check(op.key, op.cost, op.by), op.by)
      case 'reserve':
        this.#reservation = this.#reserve(op.key, op.cost, op.by)
        return this.#note(this.#reservation.decision, op.by)
      case 'commit':
        if (this.#reservation!.decision.allowed) this.#reservation!.commit(op.actualCost)
        return
      case 'cancel':
        if (this.#reservation!.decision.allowed) this.#reservation!.cancel()
        return
      case 'give back':
        this.#giver?.refund(this.#made.at(-1)!.decision as never)
        return
      default:
        this.#change(op)
        return
    }
  }

  /** Changes a key, or all keys, by the limiter of all rules. */
  #change(op: Op): void {
    const limiter = this.#limiterOf(undefined)
    if (op.do === 'clear all') {
      limiter.clearAll()
      return
    }
    const key = this.#handle(limiter, 'key' in op ? op.key : 1)
    if (op.do === 'refund') limiter.refund(key, op.cost)
    else if (op.do === 'penalize') limiter.penalize(key, op.cost)
    else if (op.do === 'block') limiter.block(key, op.ms)
    else if (op.do === 'unblock') limiter.unblock(key)
    else if (op.do === 'clear') limiter.clear(key)
    else throw new Error(`no operation of a limiter: ${op.do}`)
  }

  #check(key: number, cost: number, by: By | undefined): Decision {
    if (typeof by === 'string') return this.#group(by).check(this.#keysOf(key), cost)
    const limiter = this.#limiterOf(by)
    return limiter.check(this.#handle(limiter, key), cost)
  }

  #reserve(key: number, cost: number, by: By | undefined): Reservation {
    if (typeof by === 'string') return this.#group(by).reserve(this.#keysOf(key), cost)
    const limiter = this.#limiterOf(by)
    return limiter.reserve(this.#handle(limiter, key), cost)
  }

  #limiterOf(by: Exclude<By, string> | undefined): Limiter {
    const existing = this.#limiters.get(by?.rule)
    if (existing !== undefined) return existing
    const made = by === undefined && this.#arenas.length > 1 ? this.#ofAll() : this.#ofOne(by?.rule ?? 0)
    this.#limiters.set(by?.rule, made)
    return made
  }

  #ofAll(): Limiter {
    const names = this.#arenas.map((_, rule) => nameOf(rule)) as [string, ...string[]]
    return new this.#built.RulesLimiter({ arenas: this.#arenas, names }, this.#clock) as unknown as Limiter
  }

  #ofOne(rule: number): Limiter {
    return new this.#built.OneRuleLimiter(
      { arenas: [this.#arenas[rule]!], names: [nameOf(rule)] },
      this.#clock,
    ) as unknown as Limiter
  }

  #group(by: 'group' | 'reversed group'): LimiterGroup {
    const existing = this.#groups.get(by)
    if (existing !== undefined) return existing
    const members = this.#arenas.map((_, rule) => this.#limiterOf({ rule }).toMember(nameOf(rule)))
    const group = new this.#built.InlineGroup(by === 'group' ? members : members.reverse())
    this.#groups.set(by, group)
    return group
  }

  #keysOf(key: number): Record<string, KeyHandle> {
    return Object.fromEntries(
      this.#arenas.map((_, rule) => [nameOf(rule), this.#handle(this.#limiterOf({ rule }), key)]),
    )
  }

  /** A new one for each operation, so that the thread remembers no way. */
  #handle(limiter: Limiter, key: number): KeyHandle {
    const { lo, hi } = this.#fingerprintOf(key)
    return new this.#built.KeyHandle(limiter, lo, hi)
  }

  #note(decision: Decision, by: By | undefined): Played {
    const rules = decision.rules as readonly InlineDecision[]
    const order = typeof by === 'object' ? [by.rule] : [...rules.keys()]
    if (by === 'reversed group') order.reverse()
    const parts = new Map(order.map((rule, i) => [rule, rules[i]!]))
    const refusing = decision.allowed ? -1 : order.find((rule) => nameOf(rule) === decision.rule)!
    const played = { decision, parts, refusing }
    this.#made.push(played)
    this.#giver = typeof by === 'string' ? this.#group(by) : this.#limiterOf(by)
    return played
  }
}

const nameOf = (rule: number): string => `rule ${rule}`
