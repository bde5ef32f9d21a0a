// Which limiter counts a key, and by which limits: a policy becomes a plan.

import type { StoredPolicy } from '../config/config-store.js'
import { checkPolicy, countablePolicy, type Policy } from '../config/policy.js'
import { prefixIn } from '../config/policy-keys.js'
import { MillraceError } from '../core/errors.js'
import type { Rules } from '../core/rule.js'
import {
  DEFAULT_PLAN,
  MOST_VALUE,
  MOST_WINDOWS,
  memberIn,
  OF_MEMBER,
  planFrom,
  valueOfLimit,
} from './plan.js'
import { type PolicyShape, policyShapeOf, tagOf } from './policy-shape.js'

/** The limiter for the policies of one shape. */
export interface PlanMember<L> {
  readonly limiter: L
  readonly shape: PolicyShape
}

/** Makes limiters for the shapes of policies. */
export interface MemberMaker<L> {
  /** Why a limiter for this shape can't be made; undefined: it can. */
  refusalOf(shape: PolicyShape): string | undefined
  make(shape: PolicyShape): L
}

/** The rules of the default with other windows than at present. */
export interface Windows {
  /** What tells the present windows from others. */
  readonly present: string
  /** What tells these from others. */
  readonly text: string
  readonly rules: Rules
}

const MOST_SHARED = 1_024
/** A window that could not be made is tried again after this time: the reason may be another process. */
const RETRY_MS = 5_000
const NOTHING: ReadonlyMap<string, number> = new Map()

/** The plan of a key, and the policy that it comes from. */
export interface Planned {
  readonly plan: number
  readonly found: StoredPolicy | undefined
}

/** The limits of a plan of several rules, in whole units. */
export type PlanLimits = readonly number[]

/**
 * The plans of one limiter. Policies that are equal but for their limits share a member, so a change of a limit keeps
 * all counts. Equal policies share a plan and one object: a million keys on three plans have three. Plans are made on
 * first use, and forgotten when there are many that may not be in use.
 */
export class PolicyPlans<L> {
  readonly members: PlanMember<L>[] = []
  /** By the value of a plan of several rules. */
  readonly #lists = new Map<number, PlanLimits>()
  /** The limits of policies, for calls that hold them over an await. They do not depend on plans, which are forgotten. */
  readonly #ofPolicies = new WeakMap<Policy, PlanLimits>()
  #nextList = 1
  /** By the text of a shape, for how many policies it has been promised that it will have a member. */
  readonly #promised = new Map<string, number>()
  /** By the text of a shape that could not be made: until when that is not tried again. */
  readonly #failedUntil = new Map<string, number>()
  readonly #maker: MemberMaker<L>
  readonly #maxWindows: number
  readonly #mostPlans: number
  readonly #report: (error: MillraceError) => void
  readonly #byShape = new Map<string, number>()
  readonly #plans = new Map<string, number>()
  /** By the text of a policy: the document that others share. Few policies have many keys, so few are kept. */
  readonly #documents = new Map<string, StoredPolicy>()
  readonly #listIndices = new Map<string, number>()
  /** By the text of its windows: the member that has counted the default in them. */
  readonly #defaults = new Map<string, number>()
  /** That of keys without a policy. */
  defaultPlan = DEFAULT_PLAN
  /** Keys whose policies do not fit. They have the default. */
  unfit = 0
  /** Called when all plans have been forgotten, before a new one is made. */
  onForget: () => void = () => {}

  constructor(
    first: PlanMember<L>,
    maker: MemberMaker<L>,
    maxWindows: number,
    mostPlans: number,
    report: (error: MillraceError) => void,
  ) {
    this.members.push(first)
    // A changed limit of the first rule changes the cells of a bucket: its policies have members of their own.
    if (first.shape.rules.every(({ units, rate }) => units === 0 && rate === undefined))
      this.#byShape.set(first.shape.text, 0)
    this.#maker = maker
    this.#maxWindows = maxWindows
    this.#mostPlans = mostPlans
    this.#report = report
  }

  /** Whether policies with the windows of the first member count there. */
  get isFirstShared(): boolean {
    return this.#byShape.get(this.members[0]!.shape.text) === 0
  }

  /** The first member gets another window. From then on policies have members of their own, in every thread. */
  separateFirst(): void {
    this.#byShape.delete(this.members[0]!.shape.text)
    this.#forget()
  }

  /**
   * The index of the member that counts the default in other windows, made if there is none.
   * @throws MillraceError `ERR_MILLRACE_INVALID_RULE` if there are too many
   */
  memberFor({ present, text, rules }: Windows, make: (tag: number) => L): number {
    this.#defaults.set(present, memberIn(this.defaultPlan))
    const known = this.#defaults.get(text)
    if (known !== undefined) return known
    if (this.members.length >= this.#maxWindows) {
      const expected = `one of the ${this.#maxWindows} windows that this limiter has had: it can have no more`
      throw new MillraceError('ERR_MILLRACE_INVALID_RULE', 'window', rules[0].windowMs, expected)
    }
    const tag = tagOf(text)
    this.members.push({ limiter: make(tag), shape: { text, tag, rules } })
    this.#defaults.set(text, this.members.length - 1)
    return this.members.length - 1
  }

  /** Keys without a policy count by this member from here on. */
  useDefault(member: number): void {
    this.defaultPlan = planFrom(member, OF_MEMBER)
    this.#forget()
  }

  /**
   * Promises that a policy which is about to be stored will have a member.
   * @throws MillraceError `ERR_MILLRACE_POLICY_TOO_LARGE`, `ERR_MILLRACE_INVALID_POLICY`
   */
  check(policy: Policy): void {
    const shape = shapeOf(policy)
    const refusal = this.#refusalOf(shape, this.#promised)
    if (refusal !== undefined) throw tooLargeError('policy', policy, refusal)
    this.#promised.set(shape.text, (this.#promised.get(shape.text) ?? 0) + 1)
  }

  /** Takes back one promise of `check`, for a policy that has not been stored. */
  release(policy: Policy): void {
    const { text } = shapeOf(policy)
    const promised = this.#promised.get(text)! - 1
    if (promised > 0) this.#promised.set(text, promised)
    else this.#promised.delete(text)
  }

  /** The limits of a plan of several rules, which must be in use: another plan may forget it. */
  listOf(value: number): PlanLimits {
    return this.#lists.get(value)!
  }

  /** The limits of a sound policy. They do not depend on the plans that there are. */
  limitsIn(policy: Policy): PlanLimits {
    const known = this.#ofPolicies.get(policy)
    if (known !== undefined) return known
    const limits = checkPolicy(policy).map(({ limit }) => limit)
    this.#ofPolicies.set(policy, limits)
    return limits
  }

  /**
   * The plan of a policy, undefined for a key without one, and the policy as all keys share it. A policy that does not
   * fit is reported.
   */
  planOf(found: StoredPolicy | undefined): Planned {
    if (found === undefined) return { plan: this.defaultPlan, found }
    const text = JSON.stringify(found.policy)
    const plan = this.#plans.get(text) ?? this.#newPlanOf(found, text)
    return { plan, found: this.#shared(found, text) }
  }

  #newPlanOf(found: StoredPolicy, text: string): number {
    const rules = checkPolicy(found.policy)
    const member = this.#memberOf(found, shapeOf(found.policy))
    if (member === undefined) {
      this.unfit++
      return this.defaultPlan
    }
    if (this.#plans.size >= this.#mostPlans) this.#forget()
    const plan = planFrom(member, this.#valueOf(rules))
    this.#plans.set(text, plan)
    return plan
  }

  /** Keys with one prefix share its document; others with an equal policy share the policy. */
  #shared(found: StoredPolicy, text: string): StoredPolicy {
    const { key, version } = found
    const known = this.#documents.get(text)
    if (known !== undefined && known.key === key && known.version === version) return known
    const own = known === undefined ? found : { key, policy: known.policy, version }
    if (known === undefined && this.#documents.size >= MOST_SHARED) this.#documents.clear()
    if (known === undefined || prefixIn(key) !== undefined) this.#documents.set(text, own)
    return own
  }

  #valueOf(rules: Rules): number {
    if (rules.length === 1) return valueOfLimit(rules[0].limit)
    const limits = rules.map(({ limit }) => limit)
    const text = limits.join()
    const known = this.#listIndices.get(text)
    if (known !== undefined) return known
    const index = this.#nextList
    this.#nextList = index === MOST_VALUE ? 1 : index + 1
    this.#lists.set(index, limits)
    this.#listIndices.set(text, index)
    return index
  }

  #forget(): void {
    this.#plans.clear()
    this.#listIndices.clear()
    this.#lists.clear()
    this.onForget()
  }

  /** The index of the member for a shape; undefined: it does not fit. */
  #memberOf({ key, policy }: StoredPolicy, shape: PolicyShape): number | undefined {
    const known = this.#byShape.get(shape.text)
    if (known !== undefined) return known
    if ((this.#failedUntil.get(shape.text) ?? 0) > performance.now()) return undefined
    try {
      const refusal = this.#refusalOf(shape, NOTHING)
      if (refusal !== undefined) throw tooLargeError(key, policy, refusal)
      this.members.push({ limiter: this.#maker.make(shape), shape })
    } catch (error) {
      if (this.#failedUntil.size > MOST_WINDOWS) this.#failedUntil.clear()
      this.#failedUntil.set(shape.text, performance.now() + RETRY_MS)
      this.#report(error instanceof MillraceError ? error : tooLargeError(key, policy, String(error)))
      return undefined
    }
    this.#byShape.set(shape.text, this.members.length - 1)
    return this.members.length - 1
  }

  /** `promised`: shapes that will have members, too. */
  #refusalOf({ text, ...shape }: PolicyShape, promised: ReadonlyMap<string, number>): string | undefined {
    if (this.#byShape.has(text) || promised.has(text)) return undefined
    const others = [...promised.keys()].filter((each) => !this.#byShape.has(each))
    const isTaken = this.members.some(
      (each) => each.shape.tag === shape.tag && this.#byShape.has(each.shape.text),
    )
    if (isTaken) return 'another window'
    if (this.members.length + others.length >= this.#maxWindows) {
      return `one of the ${this.#maxWindows} windows that policies have already (the option maxWindows)`
    }
    return this.#maker.refusalOf({ text, ...shape })
  }
}

/** Cells are made for limits that can be counted. */
function shapeOf(policy: Policy): PolicyShape {
  const countable = countablePolicy(policy)
  return policyShapeOf(checkPolicy(countable), countable)
}

function tooLargeError(option: string, value: unknown, expected: string): MillraceError {
  return new MillraceError('ERR_MILLRACE_POLICY_TOO_LARGE', option, value, expected)
}
