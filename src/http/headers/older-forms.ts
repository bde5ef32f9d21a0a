import type { LimiterRule } from '../../api/call-options.js'
import type { Decision, RuleDecision } from '../../core/decision.js'
import { hasLess } from '../../core/decision-fields.js'
import { KeptRules, type Policy } from '../routes/kept-rules.js'
import { ValueCache } from '../value-cache.js'
import type { HeaderAccess } from './header-access.js'
import { resetMsFor, wholeSeconds, wholeUnits, windowParameter } from './header-figures.js'

/** The limit of an earlier limiter of the same chain, and what was left of it. */
interface Earlier {
  readonly limit: number
  readonly remaining: number
}

/**
 * The forms that show one rule: the one that decided. Of several limiters in a chain, they show the one with
 * the smallest part of its limit left.
 */
abstract class OlderForm<Response> {
  protected readonly access: HeaderAccess<Response>
  readonly #kept: KeptRules

  constructor(rules: () => readonly LimiterRule[], access: HeaderAccess<Response>) {
    this.access = access
    this.#kept = new KeptRules(rules, (_, limit, windowMs) => {
      const units = wholeUnits(limit)
      const values = new ValueCache(`limit=${units}, remaining=`, ', reset=')
      return { limit: units, item: `${units}${windowParameter(windowMs)}`, values }
    })
  }

  write(response: Response, decision: Decision, follows: boolean): void {
    const kept = this.#kept
    kept.count(decision)
    const index = kept.only === undefined ? indexShown(kept, decision) : kept.only.isShown ? 0 : NONE
    if (index === NONE) return
    const part = kept.only === undefined ? decision.rules[index]! : decision
    const { limit } = part
    if (limit === Number.POSITIVE_INFINITY) return // there is nothing to keep to
    const remaining = wholeUnits(part.remaining)
    const policy = kept.all[index]!.at(limit)
    if (follows && decision.allowed) {
      const earlier = this.earlier(response)
      if (earlier !== undefined && !hasLess({ remaining, limit: policy.limit }, earlier)) return
    }
    this.set(response, policy, remaining, resetMsFor(decision, part))
  }

  /** Undefined if the response has no such headers. */
  protected abstract earlier(response: Response): Earlier | undefined
  protected abstract set(response: Response, policy: Policy, remaining: number, resetMs: number): void
}

/** No rule is shown, because none is enforced. */
const NONE = -1

/** The index of the rule that decided, without those that clients don't hear of. */
function indexShown({ all }: KeptRules, decision: Decision): number {
  const parts = decision.rules
  if (!decision.allowed) return indexRefusing(parts, decision)
  let index = NONE
  for (let i = 0; i < parts.length; i++) {
    if (all[i]!.isShown && (index === NONE || hasLess(parts[i]!, parts[index]!))) index = i
  }
  return index
}

/** The members of a group may have rules of the same name. */
function indexRefusing(parts: readonly RuleDecision[], { rule, limit }: Decision): number {
  return parts.findIndex((part) => part.rule === rule && part.limit === limit && !part.allowed)
}

/** Draft 7: `RateLimit: limit=100, remaining=50, reset=30` and `RateLimit-Policy: 100;w=60`. */
export class Draft7Form<Response> extends OlderForm<Response> {
  protected earlier(response: Response): Earlier | undefined {
    const value = this.access.get(response, 'RateLimit')
    const found = value === undefined ? null : /^limit=(\d+), remaining=(\d+)/.exec(value)
    return found === null ? undefined : { limit: Number(found[1]), remaining: Number(found[2]) }
  }

  protected set(response: Response, { item, values }: Policy, remaining: number, resetMs: number): void {
    this.access.set(response, 'RateLimit', values.of(remaining, wholeSeconds(resetMs)))
    this.access.set(response, 'RateLimit-Policy', item)
  }
}

/** A form with a field for each number. */
abstract class SeparateForm<Response> extends OlderForm<Response> {
  protected abstract readonly prefix: 'RateLimit' | 'X-RateLimit'

  protected earlier(response: Response): Earlier | undefined {
    const limit = this.access.get(response, `${this.prefix}-Limit`)
    const remaining = this.access.get(response, `${this.prefix}-Remaining`)
    if (limit === undefined || remaining === undefined) return undefined
    return { limit: Number(limit), remaining: Number(remaining) }
  }
}

/** Draft 6: `RateLimit-Limit: 100`, `-Remaining`, `-Reset` in seconds, and `RateLimit-Policy: 100;w=60`. */
export class Draft6Form<Response> extends SeparateForm<Response> {
  protected readonly prefix = 'RateLimit'

  protected set(response: Response, { limit, item }: Policy, remaining: number, resetMs: number): void {
    const { access } = this
    access.set(response, 'RateLimit-Limit', `${limit}`)
    access.set(response, 'RateLimit-Remaining', `${remaining}`)
    access.set(response, 'RateLimit-Reset', `${wholeSeconds(resetMs)}`)
    access.set(response, 'RateLimit-Policy', item)
  }
}

/** The fields of GitHub and others: `X-RateLimit-Limit: 100`, `-Remaining`, `-Reset` in epoch seconds. */
export class XForm<Response> extends SeparateForm<Response> {
  protected readonly prefix = 'X-RateLimit'
  readonly #now: () => number

  /** @param now epoch milliseconds */
  constructor(rules: () => readonly LimiterRule[], access: HeaderAccess<Response>, now: () => number) {
    super(rules, access)
    this.#now = now
  }

  protected set(response: Response, { limit }: Policy, remaining: number, resetMs: number): void {
    const { access } = this
    access.set(response, 'X-RateLimit-Limit', `${limit}`)
    access.set(response, 'X-RateLimit-Remaining', `${remaining}`)
    access.set(response, 'X-RateLimit-Reset', `${wholeSeconds(this.#now() + resetMs)}`)
  }
}
