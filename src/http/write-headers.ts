import type { AsyncLimiter } from '../api/async-limiter.js'
import type { LimiterRule } from '../api/call-options.js'
import type { Limiter } from '../api/limiter.js'
import type { Decision, RuleDecision } from '../core/decision.js'
import { isUndecided } from '../core/decision-source.js'
import { invalid } from '../core/errors.js'
import { MembersDecision } from '../core/group-decision.js'
import { refuseUnknown } from '../core/option-names.js'
import { type RuleSource, withPlainName } from './headers/form-by-policy.js'
import type { HeaderAccess } from './headers/header-access.js'
import { DEFAULT_STANDARD, RateLimitHeaders, type Standard } from './headers/headers.js'

/**
 * What headers can be written into: a response of node:http, node:http2 or Express, a reply of Fastify, a context of Koa
 * or of Hono, `Headers` of the web, or what has them, such as a `Response`.
 */
export type HeaderPlace =
  | { setHeader(name: string, value: string): unknown; getHeader(name: string): unknown }
  | { header(name: string, value: string): unknown; getHeader(name: string): unknown }
  | { readonly res: { setHeader(name: string, value: string): unknown; getHeader(name: string): unknown } }
  | { header(name: string, value: string): unknown; readonly res: { readonly headers: object } }
  | { set(name: string, value: string): void; get(name: string): string | null }
  | { readonly headers: { set(name: string, value: string): void; get(name: string): string | null } }

/** The options of {@link writeHeaders}. */
export interface WriteHeadersOptions {
  /**
   * The form of the headers; false for none except `Retry-After`.
   * @default 'draft-11'
   */
  standard?: Standard | undefined
  /**
   * Whether to name the headers in `Access-Control-Expose-Headers`, for pages of other origins.
   * @default false
   */
  exposeHeaders?: boolean | undefined
  /**
   * The limiter of the decision. `RateLimit-Policy` then has its windows, which a decision does not tell.
   * @default the policy is written without its window (`w`)
   */
  limiter?: Limiter | AsyncLimiter | undefined
}

/** The functions by which a place reads and writes headers. */
interface Access {
  set(name: string, value: string): unknown
  get(name: string): unknown
}

// biome-ignore lint/suspicious/noExplicitAny: what it is, is found out by what it has
function accessTo(place: any): Access | undefined {
  const has = (of: unknown, name: string) => typeof (of as Record<string, unknown>)?.[name] === 'function'
  if (has(place, 'setHeader')) {
    return { set: (name, value) => place.setHeader(name, value), get: (name) => place.getHeader(name) }
  }
  if (has(place, 'header')) {
    const set = (name: string, value: string) => place.header(name, value)
    return {
      set,
      get: (name) => (has(place, 'getHeader') ? place.getHeader(name) : place.res.headers.get(name)),
    }
  }
  if (has(place?.res, 'setHeader')) return accessTo(place.res)
  const headers = has(place, 'set') ? place : place?.headers
  if (!has(headers, 'set')) return undefined
  return { set: (name, value) => headers.set(name, value), get: (name) => headers.get(name) }
}

const ACCESS: HeaderAccess<Access> = {
  set: (place, name, value) => void place.set(name, value),
  get(place, name) {
    const value = place.get(name)
    return value === undefined || value === null ? undefined : String(value)
  },
}

/** The rules of a decision, as far as it tells them: without their windows. */
function rulesOf(decision: Decision): RuleSource {
  const ruleOf = (name: string, { limit }: RuleDecision) =>
    withPlainName({ name, limit, windowMs: Number.NaN } as LimiterRule)
  if (!MembersDecision.is(decision)) return { rules: decision.rules.map((part) => ruleOf(part.rule, part)) }
  const rules = Object.entries(decision.members).flatMap(([member, { rules }]) =>
    rules.map((part) => ruleOf(rules.length === 1 ? member : `${member}.${part.rule}`, part)),
  )
  return { rules, showsRefusing: true }
}

/**
 * Writes the headers of a decision into a response: those that `rateLimit` and `groupLimit` write, for decisions that
 * your own code makes. Behind the headers of another limiter it appends its own. Of a decision that was made because a
 * store does not answer, only `Retry-After` is written.
 * @param response a response of node:http, Express or Nest, a reply of Fastify, a context of Koa or Hono, a `Response`
 * whose headers may be changed, or `Headers`
 * @param decision the decision of a limiter or a group
 * @param options the form of the headers, and the limiter for the windows of its rules
 * @throws {MillraceError} `ERR_MILLRACE_INVALID_OPTION` for something that has no headers, and for wrong options.
 * What the response throws is thrown, such as `ERR_HTTP_HEADERS_SENT`
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { createLimiter } from 'millrace'
 * import { writeHeaders } from 'millrace/http'
 *
 * const limiter = createLimiter({ limit: 5, window: '15m' })
 * createServer((request, response) => {
 *   const decision = limiter.check('alice')
 *   writeHeaders(response, decision, { limiter })
 *   response.writeHead(decision.allowed ? 200 : 429).end()
 * })
 * ```
 */
export function writeHeaders(
  response: HeaderPlace,
  decision: Decision,
  options: WriteHeadersOptions = {},
): void {
  refuseUnknown(options, ['standard', 'exposeHeaders', 'limiter'], (name, expected) =>
    invalid('options', name, expected),
  )
  const { standard = DEFAULT_STANDARD, exposeHeaders = false, limiter } = options
  const access = accessTo(response)
  if (access === undefined) {
    throw invalid('response', response, 'a response, a reply, a context, or Headers')
  }
  const headers = new RateLimitHeaders(standard, limiter ?? rulesOf(decision), ACCESS)
  if (!isUndecided(decision.source)) headers.write(access, decision, true)
  if (!decision.allowed) headers.writeRetryAfter(access, decision)
  if (exposeHeaders) headers.expose(access)
}
