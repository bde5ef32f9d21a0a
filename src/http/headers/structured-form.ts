import type { LimiterRule } from '../../api/call-options.js'
import type { Decision } from '../../core/decision.js'
import { MillraceError } from '../../core/errors.js'
import { KeptRules, type RulePolicies } from '../routes/kept-rules.js'
import { ValueCache } from '../value-cache.js'
import type { HeaderAccess } from './header-access.js'
import { secondsFor, wholeUnits, windowParameter } from './header-figures.js'

/**
 * The fields of the drafts 8 to 11, lists of structured fields (RFC 9651), with an item for each rule:
 * `RateLimit: "default";r=50;t=30` and `RateLimit-Policy: "default";q=100;w=60`.
 */
export class StructuredForm<Response> {
  readonly #access: HeaderAccess<Response>
  readonly #kept: KeptRules
  readonly #showsRefusing: boolean
  /** The items of the last policies of several rules, and their list. */
  readonly #items: string[] = []
  #policy = ''

  /**
   * @param showsRefusing whether a refusal shows only the rules that refused it
   * @throws MillraceError for a name that a structured field can't hold
   */
  constructor(rules: () => readonly LimiterRule[], access: HeaderAccess<Response>, showsRefusing = false) {
    this.#showsRefusing = showsRefusing
    const names = quotedNames(rules())
    const values = names.map((name) => new ValueCache(`${name};r=`, ';t='))
    this.#access = access
    this.#kept = new KeptRules(rules, (i, limit, windowMs) => ({
      limit,
      item: `${names[i]};q=${wholeUnits(limit)}${windowParameter(windowMs)}`,
      values: values[i]!,
    }))
  }

  write(response: Response, decision: Decision, follows: boolean): void {
    const kept = this.#kept
    kept.count(decision)
    if (kept.only === undefined) this.#writeAll(response, decision, follows)
    else if (kept.only.isShown) this.#writeOnly(kept.only, response, decision, follows)
  }

  #writeOnly(rule: RulePolicies, response: Response, decision: Decision, follows: boolean): void {
    const { limit } = decision
    if (limit === Number.POSITIVE_INFINITY) return // there is nothing to keep to
    const policy = rule.at(limit)
    const value = policy.values.of(wholeUnits(decision.remaining), secondsFor(decision))
    this.#set(response, value, policy.item, follows)
  }

  #writeAll(response: Response, { allowed, rules: parts }: Decision, follows: boolean): void {
    const onlyRefusing = this.#showsRefusing && !allowed
    const { all } = this.#kept
    const items = this.#items
    let value = ''
    let shown = 0
    let isSame = true
    for (let i = 0; i < all.length; i++) {
      const rule = all[i]!
      const part = parts[i]!
      if (!rule.isShown || part.limit === Number.POSITIVE_INFINITY) continue
      if (onlyRefusing && part.allowed) continue
      const policy = rule.at(part.limit)
      const item = policy.values.of(wholeUnits(part.remaining), secondsFor(part))
      value = shown === 0 ? item : `${value}, ${item}`
      if (items[shown] !== policy.item) {
        items[shown] = policy.item
        isSame = false
      }
      shown++
    }
    if (shown === 0) return
    if (!isSame || items.length !== shown) {
      items.length = shown
      this.#policy = items.join(', ')
    }
    this.#set(response, value, this.#policy, follows)
  }

  #set(response: Response, value: string, policy: string, follows: boolean): void {
    const access = this.#access
    access.set(response, 'RateLimit', follows ? this.#after(response, 'RateLimit', value) : value)
    const name = 'RateLimit-Policy'
    access.set(response, name, follows ? this.#after(response, name, policy) : policy)
  }

  /** The value behind that of an earlier limiter. A value of another form, which is no such list, is replaced. */
  #after(response: Response, name: string, value: string): string {
    const earlier = this.#access.get(response, name)
    return earlier?.startsWith('"') ? `${earlier}, ${value}` : value
  }
}

/** The names as strings of structured fields. @throws MillraceError */
function quotedNames(rules: readonly LimiterRule[]): string[] {
  return rules.map(({ name }, i) => {
    if (/^[\x20-\x7e]*$/.test(name)) return `"${name.replace(/["\\]/g, '\\$&')}"`
    const option = rules.length === 1 ? 'name' : `rules[${i}].name`
    const expected = 'printable ASCII characters only, because the RateLimit headers contain the name'
    throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, name, expected)
  })
}
