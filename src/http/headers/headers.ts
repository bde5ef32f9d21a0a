import type { LimiterRule } from '../../api/call-options.js'
import type { Decision } from '../../core/decision.js'
import { secondsOf } from '../../core/decision-fields.js'
import { MillraceError } from '../../core/errors.js'
import { type Form, FormByPolicy, hasManySources, type RuleSource } from './form-by-policy.js'
import type { HeaderAccess } from './header-access.js'
import { Draft6Form, Draft7Form, XForm } from './older-forms.js'
import { StructuredForm } from './structured-form.js'

/**
 * The form of the RateLimit headers. `'draft-11'`, `'draft-10'` and `'draft-8'` of the IETF draft
 * `draft-ietf-httpapi-ratelimit-headers` have the same form. `'x-ratelimit'` is older than any draft. `false`:
 * none. See `docs/reference/http-headers.md`.
 */
export type Standard = 'draft-11' | 'draft-10' | 'draft-8' | 'draft-7' | 'draft-6' | 'x-ratelimit' | false

export const DEFAULT_STANDARD = 'draft-11' satisfies Standard

const STRUCTURED = ['RateLimit', 'RateLimit-Policy']

/** The names of the fields of each form. */
const FIELDS: Readonly<Record<Exclude<Standard, false>, readonly string[]>> = {
  'draft-11': STRUCTURED,
  'draft-10': STRUCTURED,
  'draft-8': STRUCTURED,
  'draft-7': STRUCTURED,
  'draft-6': ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'RateLimit-Policy'],
  'x-ratelimit': ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'],
}

/** The header that tells a browser which others a page of another origin may read. */
export const EXPOSE = 'Access-Control-Expose-Headers'

/** The headers of one limiter's decisions. */
export class RateLimitHeaders<Response> {
  readonly #access: HeaderAccess<Response>
  readonly #form: Form<Response> | undefined
  readonly #exposed: string
  /** The last names that were exposed already, and these with {@link #exposed}: an app sets the same ones. */
  #present = ''
  #merged: string

  /**
   * @param limiter has the present rules. A rule that changes keeps its name and its place
   * @param now epoch milliseconds, for `'x-ratelimit'`
   * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` for an unknown form, and for the name of a rule that
   * a header can't hold
   */
  constructor(
    standard: Standard,
    limiter: RuleSource,
    access: HeaderAccess<Response>,
    now: () => number = Date.now,
  ) {
    this.#access = access
    if (standard !== false) {
      const make = (rules: () => readonly LimiterRule[]) =>
        formOf(standard, rules, access, now, limiter.showsRefusing === true)
      this.#form = hasManySources(limiter) ? new FormByPolicy(limiter, make) : make(() => limiter.rules)
    }
    this.#exposed = exposedHeaders(standard)
    this.#merged = this.#exposed
  }

  /**
   * Sets the RateLimit headers.
   * @param follows whether an earlier limiter of the same chain has written its own. The structured forms
   * append to them. The older ones show the limiter that refused, else the one with the least left
   */
  write(response: Response, decision: Decision, follows: boolean): void {
    this.#form?.write(response, decision, follows)
  }

  /**
   * Sets `Retry-After` for a refusal. A request that would never be admitted gets none: its cost is above the
   * limit, or its key is blocked for ever. A client that waited would be refused again.
   */
  writeRetryAfter(response: Response, decision: Decision): void {
    const { retryAfterMs } = decision
    if (retryAfterMs === 0 || retryAfterMs === Number.POSITIVE_INFINITY) return
    this.#access.set(response, 'Retry-After', `${secondsOf(retryAfterMs)}`)
  }

  /** Lets pages of other origins read the headers. Keeps the names that are exposed already. */
  expose(response: Response): void {
    const present = this.#access.get(response, EXPOSE) ?? ''
    if (present !== this.#present) {
      this.#present = present
      this.#merged = mergeNames(present, this.#exposed)
    }
    this.#access.set(response, EXPOSE, this.#merged)
  }
}

/** The names of the headers of a form, and `Retry-After`: a value of `Access-Control-Expose-Headers`. */
export function exposedHeaders(standard: Standard): string {
  return [...(standard === false ? [] : FIELDS[standard]), 'Retry-After'].join(', ')
}

/** Adds names to a list of names, those that it does not contain. */
function mergeNames(present: string, added: string): string {
  const namesIn = (list: string) => list.split(',').map((name) => name.trim())
  const known = new Set(namesIn(present.toLowerCase()))
  const missing = namesIn(added).filter((name) => !known.has(name.toLowerCase()))
  return [present, ...missing].filter((part) => part.trim() !== '').join(', ')
}

function formOf<Response>(
  standard: Exclude<Standard, false>,
  rules: () => readonly LimiterRule[],
  access: HeaderAccess<Response>,
  now: () => number,
  showsRefusing: boolean,
): Form<Response> {
  switch (standard) {
    case 'draft-11':
    case 'draft-10':
    case 'draft-8':
      return new StructuredForm(rules, access, showsRefusing)
    case 'draft-7':
      return new Draft7Form(rules, access)
    case 'draft-6':
      return new Draft6Form(rules, access)
    case 'x-ratelimit':
      return new XForm(rules, access, now)
    default: {
      const expected = `one of ${Object.keys(FIELDS).join(', ')}, or false`
      throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'standard', standard, expected)
    }
  }
}
