import type { LimiterRule } from '../../api/call-options.js'
import type { Decision } from '../../core/decision.js'

/** Writes a decision in one form. */
export interface Form<Response> {
  write(response: Response, decision: Decision, follows: boolean): void
}

/** What has the rules of decisions: a limiter. */
export interface RuleSource {
  readonly rules: readonly LimiterRule[]
  /** Whether a refusal shows only the rules that refused it: those of a group are of different keys. */
  readonly showsRefusing?: boolean
}

/** A limiter with a configuration store: each of its decisions is made by the rules of its key's policy. */
export interface ManyRuleSources extends RuleSource {
  deciderOf(decision: Decision): RuleSource
}

/** Makes a form of present rules. */
export type MakeForm<Response> = (rules: () => readonly LimiterRule[]) => Form<Response>

export const hasManySources = (limiter: RuleSource): limiter is ManyRuleSources =>
  typeof (limiter as Partial<ManyRuleSources>).deciderOf === 'function'

/** Writes each decision by the rules that made it. */
export class FormByPolicy<Response> implements Form<Response> {
  readonly #limiter: ManyRuleSources
  readonly #make: MakeForm<Response>
  readonly #forms = new Map<RuleSource, Form<Response>>()

  /** @throws MillraceError for the name of a default rule that a header can't hold */
  constructor(limiter: ManyRuleSources, make: MakeForm<Response>) {
    this.#limiter = limiter
    this.#make = make
    make(() => limiter.rules)
  }

  write(response: Response, decision: Decision, follows: boolean): void {
    const source = this.#limiter.deciderOf(decision)
    const form = this.#forms.get(source) ?? this.#add(source)
    form.write(response, decision, follows)
  }

  #add(source: RuleSource): Form<Response> {
    const form = this.#make(() => source.rules.map(withPlainName))
    this.#forms.set(source, form)
    return form
  }
}

/** A policy comes while the server runs: a name that a header can't hold must not fail the request. */
export function withPlainName(rule: LimiterRule): LimiterRule {
  return { ...rule, name: rule.name.replace(/[^\x20-\x7e]/gu, '?') }
}
