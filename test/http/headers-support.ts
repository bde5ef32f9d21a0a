import { validateHeaderName, validateHeaderValue } from 'node:http'
import {
  createLimiter,
  type Decision,
  type LimiterOptions,
  manualClock,
  type RulesLimiterOptions,
} from 'millrace'
import { parseItem, parseList } from 'structured-headers'
import * as assert from 'uvu/assert'
import type { HeaderAccess } from '#millrace/http/headers/header-access.js'
import { RateLimitHeaders, type Standard } from '#millrace/http/headers/headers.js'
import { START_MS } from '../limiter/support.js'

/** The headers of a response, by their names in lower case. */
export type Headers = Map<string, string>

/** Sets headers as Node.js does: a name or a value that it would refuse throws. */
export const ACCESS: HeaderAccess<Headers> = {
  set(headers, name, value) {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    assert.type(value, 'string')
    headers.set(name.toLowerCase(), value)
  },
  get: (headers, name) => headers.get(name.toLowerCase()),
}

/** Epoch milliseconds of the tests, for `'x-ratelimit'`. */
export const NOW_MS = 1_700_000_000_001

/** Of one rule or several. */
export type SomeOptions = Partial<LimiterOptions> | RulesLimiterOptions

/** A limiter on a manual clock, and the headers of its decisions. */
export function headersWith(standard: Standard, options: SomeOptions = {}) {
  const clock = manualClock(START_MS)
  const rule = 'rules' in options ? {} : { limit: 5, window: '1m', granularity: '1s' }
  const limiter = createLimiter({ ...rule, maxKeys: 20, clock, ...options } as LimiterOptions)
  const headers = new RateLimitHeaders(standard, limiter, ACCESS, () => NOW_MS)
  const written = (decision: Decision, earlier?: Headers): Headers => {
    const response: Headers = new Map(earlier)
    headers.write(response, decision, earlier !== undefined)
    if (!decision.allowed) headers.writeRetryAfter(response, decision)
    return response
  }
  return { clock, limiter, headers, written }
}

/** The item of a rule in a list of structured fields. */
export interface Item {
  readonly name: unknown
  readonly [parameter: string]: unknown
}

/** Parses a list whose items are strings with integer parameters. */
export function itemsOf(value: string | undefined): Item[] {
  return parseList(value!).map((member) => {
    const [name, parameters] = member
    assert.type(name, 'string', value)
    for (const number of parameters.values()) assert.ok(Number.isInteger(number), value)
    return { name, ...Object.fromEntries(parameters) }
  })
}

/** Parses `100;w=60` of the drafts 6 and 7. */
export function policyOf(value: string | undefined): { limit: unknown; w: unknown } {
  const [limit, parameters] = parseItem(value!)
  return { limit, w: parameters.get('w') }
}

export const ceilSeconds = (ms: number): number => Math.ceil(ms / 1_000)
