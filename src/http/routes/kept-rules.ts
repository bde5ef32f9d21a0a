import type { LimiterRule } from '../../api/call-options.js'
import type { Decision } from '../../core/decision.js'
import { wasEnforced } from '../../core/verdict.js'
import type { ValueCache } from '../value-cache.js'

/** The parts of header values that depend on a rule's limit and window. */
export interface Policy {
  readonly limit: number
  /** The rule's item of `RateLimit-Policy`. */
  readonly item: string
  /** The values of `RateLimit`. */
  readonly values: ValueCache
}

/** Makes the policy of a rule. The limit is that of a decision, which may have one of its own. */
export type MakePolicy = (index: number, limit: number, windowMs: number) => Policy

/** The rules are read again after this many decisions: a window may change while the limit does not. */
const DECISIONS_PER_READ = 128
/** The policies of a rule that are kept. A service has fewer plans. */
const MOST_POLICIES = 64

/** The policies of one rule, by limit. */
export class RulePolicies {
  /** Whether clients hear of the rule: not of one that never refuses. */
  isShown = true
  windowMs: number
  readonly #make: (limit: number) => Policy
  readonly #kept = new Map<number, Policy>()
  #last: Policy | undefined

  /** @param make makes the policy of a limit by the present window */
  constructor(windowMs: number, make: (limit: number) => Policy) {
    this.windowMs = windowMs
    this.#make = make
  }

  /** The policy of a decision with this limit. */
  at(limit: number): Policy {
    const last = this.#last
    return last !== undefined && last.limit === limit ? last : this.#find(limit)
  }

  changeWindow(windowMs: number): void {
    if (windowMs === this.windowMs) return
    this.windowMs = windowMs
    this.#kept.clear()
    this.#last = undefined
  }

  #find(limit: number): Policy {
    const found = this.#kept.get(limit) ?? this.#add(limit)
    this.#last = found
    return found
  }

  #add(limit: number): Policy {
    const policy = this.#make(limit)
    if (this.#kept.size === MOST_POLICIES) this.#kept.clear()
    this.#kept.set(limit, policy)
    return policy
  }
}

/** The time in which the limit of a decision comes: that of a token bucket is its burst. */
const quotaMs = ({ windowMs, limit, burst = limit }: LimiterRule): number => (windowMs * burst) / limit

/**
 * The policies of a limiter's rules. Their number and names never change. A limit or a window may, at any
 * time and by another thread.
 */
export class KeptRules {
  readonly all: readonly RulePolicies[]
  /** The rule, if there is one only. */
  readonly only: RulePolicies | undefined
  readonly #rules: () => readonly LimiterRule[]
  /** Decisions until the rules are read again; undefined before the first. */
  #left: number | undefined

  constructor(rules: () => readonly LimiterRule[], make: MakePolicy) {
    this.#rules = rules
    this.all = rules().map((rule, i) => {
      const policies: RulePolicies = new RulePolicies(quotaMs(rule), (limit) => {
        this.#read() // a new limit may have come with a new window
        return make(i, limit, policies.windowMs)
      })
      return policies
    })
    this.only = this.all.length === 1 ? this.all[0] : undefined
  }

  /** Counts a decision. */
  count(decision: Decision): void {
    if (this.#left === undefined) this.#meet(decision)
    else if (--this.#left === 0) this.#read()
  }

  /** Learns from the first decision which rules are enforced. */
  #meet({ rules }: Decision): void {
    for (let i = 0; i < this.all.length; i++) this.all[i]!.isShown = wasEnforced(rules[i]!)
    this.#left = DECISIONS_PER_READ
  }

  #read(): void {
    const rules = this.#rules()
    for (let i = 0; i < this.all.length; i++) this.all[i]!.changeWindow(quotaMs(rules[i]!))
    this.#left = DECISIONS_PER_READ
  }
}
