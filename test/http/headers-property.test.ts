// run: full, also-long, modules
// Whatever the names, limits, windows, costs and blocks: every value parses, and none has a control character.

import { createLimiter, type Decision, type LimiterOptions, MillraceError, manualClock } from 'millrace'
import { parseDictionary } from 'structured-headers'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { RateLimitHeaders, type Standard } from '#millrace/http/headers/headers.js'
import fc from '../fast-check.js'
import { START_MS } from '../limiter/support.js'
import { sized } from '../size.js'
import { ACCESS, type Headers, itemsOf, policyOf } from './headers-support.js'

const MAX_INTEGER = 999_999_999_999_999
const NUM_RUNS = sized({ quick: 2_000, full: 2_000, long: 10_000 })

const rule = fc.record(
  {
    name: fc.oneof(fc.string({ minLength: 1 }), fc.string({ minLength: 1, unit: 'binary' })),
    limit: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 4_194_302 })),
    window: fc.oneof(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 3e14 })),
    unit: fc.option(fc.integer({ min: 1, max: 2 ** 31 }), { nil: undefined }),
    shadow: fc.boolean(),
  },
  { requiredKeys: ['name', 'limit', 'window'] },
)
const rules = fc.uniqueArray(rule, { minLength: 1, maxLength: 4, selector: ({ name }) => name })

/** What happens before each decision. */
const step = fc.oneof(
  fc.record({ cost: fc.oneof(fc.integer({ min: 0, max: 30 }), fc.maxSafeNat()) }),
  fc.record({ advanceMs: fc.oneof(fc.integer({ min: 0, max: 10_000 }), fc.integer({ min: 0, max: 1e13 })) }),
  fc.record({ blockMs: fc.oneof(fc.integer({ min: 1, max: 1e12 }), fc.constant(Number.POSITIVE_INFINITY)) }),
)
type Rule = typeof rule extends fc.Arbitrary<infer T> ? T : never
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

/** The decisions of a limiter of these rules, in order. */
function* decisions(chosen: readonly Rule[], steps: readonly Step[]) {
  const clock = manualClock(START_MS)
  const scaled = chosen.map(({ limit, unit, window, ...others }) => ({
    ...others,
    ...(unit === undefined ? { limit } : { limit: limit * unit, unit }),
    window,
    granularity: window,
  }))
  const limiter = createLimiter({ rules: scaled, maxKeys: 10, clock } as unknown as LimiterOptions)
  for (const one of steps) {
    if ('advanceMs' in one) clock.advance(one.advanceMs)
    if ('blockMs' in one) limiter.block('key', one.blockMs)
    yield { limiter, decision: limiter.check('key', 'cost' in one ? one.cost : 1) }
  }
  limiter.close()
}

const isInteger = (value: unknown): boolean =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_INTEGER

function assertStructured(headers: Headers, decision: Decision, names: readonly string[]): void {
  if (names.length === 0) {
    assert.equal([...headers.keys()], [])
    return
  }
  const items = itemsOf(headers.get('ratelimit'))
  const policies = itemsOf(headers.get('ratelimit-policy'))
  for (const list of [items, policies]) {
    assert.equal(
      list.map(({ name }) => name),
      names,
    )
  }
  const parts = decision.rules.filter(({ shadow }) => shadow === undefined)
  for (const [i, { r, t }] of items.entries()) {
    const part = parts[i]!
    assert.is(r, Math.min(part.remaining, MAX_INTEGER))
    const ms = part.allowed ? part.resetMs : part.retryAfterMs
    assert.is(t === undefined, ms === Number.POSITIVE_INFINITY)
    if (t !== undefined) assert.ok(isInteger(t) && (part.allowed || (t as number) >= 1))
  }
  for (const [i, { q, w }] of policies.entries()) {
    assert.is(q, Math.min(parts[i]!.limit, MAX_INTEGER))
    assert.ok(isInteger(w) && (w as number) >= 1)
  }
}

function assertOlder(standard: Standard, headers: Headers): void {
  if (standard === 'draft-7') {
    for (const name of ['limit', 'remaining', 'reset']) {
      assert.ok(isInteger(parseDictionary(headers.get('ratelimit')!).get(name)![0]))
    }
  } else {
    const prefix = standard === 'draft-6' ? 'ratelimit' : 'x-ratelimit'
    for (const name of ['limit', 'remaining', 'reset'])
      assert.match(headers.get(`${prefix}-${name}`)!, /^\d{1,15}$/)
  }
  if (standard === 'x-ratelimit') return
  const { limit, w } = policyOf(headers.get('ratelimit-policy'))
  assert.ok(isInteger(limit) && isInteger(w))
}

for (const standard of ['draft-11', 'draft-7', 'draft-6', 'x-ratelimit'] as const) {
  test(`${standard}: every value parses`, () => {
    let written = 0
    fc.assert(
      fc.property(rules, fc.array(step, { minLength: 1, maxLength: 8 }), (chosen, steps) => {
        let headers: RateLimitHeaders<Headers> | undefined
        const shown = chosen.filter(({ shadow }) => shadow !== true).map(({ name }) => name)
        for (const { limiter, decision } of decisions(chosen, steps)) {
          try {
            headers ??= new RateLimitHeaders(standard, limiter, ACCESS)
          } catch (error) {
            // A name of a rule that is not shown counts, too.
            assert.ok(error instanceof MillraceError && standard === 'draft-11', `${error}`)
            return assert.ok(chosen.some(({ name }) => /[^ -~]/.test(name)))
          }
          const response: Headers = new Map()
          headers.write(response, decision, false)
          if (standard === 'draft-11') assertStructured(response, decision, shown)
          else if (shown.length > 0) assertOlder(standard, response)
          headers.writeRetryAfter(response, decision)
          for (const value of response.values()) assert.match(value, /^[ -~]*$/)
          const retryAfter = response.get('retry-after')
          assert.is(
            retryAfter !== undefined,
            !decision.allowed && decision.retryAfterMs !== Number.POSITIVE_INFINITY,
          )
          if (retryAfter !== undefined) assert.is(retryAfter, `${decision.retryAfterSeconds}`)
          written++
        }
      }),
      { numRuns: NUM_RUNS },
    )
    assert.ok(written > NUM_RUNS / 2, `${written} decisions were written`)
  })
}

test.run()
