// run: modules
// The forms that show one rule: drafts 7 and 6, and X-RateLimit.

import type { Decision } from 'millrace'
import { parseRateLimit } from 'ratelimit-header-parser'
import { parseDictionary } from 'structured-headers'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  ceilSeconds,
  type Headers,
  headersWith,
  NOW_MS,
  policyOf,
  type SomeOptions,
} from './headers-support.js'

const OLDER = ['draft-7', 'draft-6', 'x-ratelimit'] as const
type Older = (typeof OLDER)[number]

/** The names and values, as the text of a response. */
const textOf = (headers: Headers): string[] => [...headers].map(([name, value]) => `${name}: ${value}`)

/** What a client reads: by ratelimit-header-parser, and the time by the form's own unit. */
function readBy(standard: Older, headers: Headers) {
  const { limit, used, remaining, reset } = parseRateLimit(Object.fromEntries(headers))!
  assert.ok(reset instanceof Date && !Number.isNaN(reset.getTime()))
  assert.is(used, limit - remaining)
  return { limit, remaining, seconds: secondsIn(standard, headers) }
}

function secondsIn(standard: Older, headers: Headers): number {
  switch (standard) {
    case 'draft-7':
      return parseDictionary(headers.get('ratelimit')!).get('reset')![0] as number
    case 'draft-6':
      return Number(headers.get('ratelimit-reset'))
    case 'x-ratelimit':
      return Number(headers.get('x-ratelimit-reset')) - Math.floor(NOW_MS / 1_000)
  }
}

/** `NOW_MS` is one millisecond after a second, so a time in epoch seconds is rounded up by up to one more. */
const secondsFor = (standard: Older, ms: number): number =>
  standard === 'x-ratelimit' ? ceilSeconds(ms + (NOW_MS % 1_000)) : ceilSeconds(ms)

const shows = (standard: Older, headers: Headers, { limit, remaining }: Decision, ms: number) =>
  assert.equal(readBy(standard, headers), { limit, remaining, seconds: secondsFor(standard, ms) }, standard)

test('the text of each form', () => {
  const texts = OLDER.map((standard) => {
    const { limiter, clock, written } = headersWith(standard, { limit: 100 })
    limiter.check('key', 50)
    clock.advance(30_377) // half a minute before the end of the granule of the charge
    const peek = limiter.peek('key', 0)
    assert.is(peek.resetMs, 30_500)
    return textOf(written(peek))
  })
  assert.equal(texts, [
    ['ratelimit: limit=100, remaining=50, reset=31', 'ratelimit-policy: 100;w=60'],
    ['ratelimit-limit: 100', 'ratelimit-remaining: 50', 'ratelimit-reset: 31', 'ratelimit-policy: 100;w=60'],
    ['x-ratelimit-limit: 100', 'x-ratelimit-remaining: 50', 'x-ratelimit-reset: 1700000031'],
  ])
})

for (const standard of OLDER) {
  test(`${standard}: admissions and refusals of one rule`, () => {
    const { limiter, written } = headersWith(standard)
    const admitted = limiter.check('key', 4)
    shows(standard, written(admitted), admitted, admitted.resetMs)
    const refused = limiter.check('key', 2)
    const headers = written(refused)
    shows(standard, headers, refused, refused.retryAfterMs)
    assert.is(headers.get('retry-after'), `${ceilSeconds(refused.retryAfterMs)}`)
    if (standard !== 'x-ratelimit') {
      assert.equal(policyOf(headers.get('ratelimit-policy')), { limit: 5, w: 60 })
    }
  })

  test(`${standard}: of several rules, the one that decided`, () => {
    const { limiter, written } = headersWith(standard, {
      rules: [
        { name: 'hourly', limit: 1_000, window: '1h' },
        { name: 'burst', limit: 3, window: '1s' },
        { name: 'daily', limit: 3_000, window: '1d' },
      ],
    })
    for (const allowed of [true, true, true, false]) {
      const decision = limiter.check('key')
      assert.is(decision.allowed, allowed)
      assert.is(decision.rule, 'burst')
      const headers = written(decision)
      shows(standard, headers, decision, allowed ? decision.resetMs : decision.retryAfterMs)
      if (standard !== 'x-ratelimit') {
        assert.equal(policyOf(headers.get('ratelimit-policy')), { limit: 3, w: 1 })
      }
    }
  })

  test(`${standard}: a rule with the option shadow is not shown`, () => {
    const { limiter, written } = headersWith(standard, {
      rules: [
        { name: 'trial', limit: 1, window: '1s', shadow: true },
        { name: 'hourly', limit: 10, window: '1h' },
      ],
    })
    limiter.check('key')
    const decision = limiter.check('key')
    assert.is(decision.rule, 'trial')
    assert.is(readBy(standard, written(decision)).limit, 10)
    const trial = headersWith(standard, { shadow: true })
    assert.equal(textOf(trial.written(trial.limiter.check('key'))), [])
  })

  test(`${standard}: a request that is never admitted has a time all the same, but no Retry-After`, () => {
    const { limiter, written } = headersWith(standard)
    limiter.check('key')
    const above = limiter.check('key', 6)
    shows(standard, written(above), above, above.resetMs)
    assert.is(written(above).has('retry-after'), false)
    limiter.block('key', Number.POSITIVE_INFINITY)
    const blocked = limiter.check('key')
    shows(standard, written(blocked), blocked, 2_147_483_000)
    assert.is(written(blocked).has('retry-after'), false)
  })

  test(`${standard}: quantities, windows below a second, limits of a call`, () => {
    const huge = headersWith(standard, { limit: '9000TB', unit: '4TB', window: '100ms', granularity: '10ms' })
    const headers = huge.written(huge.limiter.check('key'))
    assert.is(readBy(standard, headers).limit, 999_999_999_999_999)
    if (standard !== 'x-ratelimit') assert.is(policyOf(headers.get('ratelimit-policy')).w, 1)
    const { limiter, written } = headersWith(standard, { limit: 1_000 })
    for (let limit = 1; limit < 200; limit++) {
      const decision = limiter.check(`key ${limit % 10}`, 0, { limit })
      assert.is(readBy(standard, written(decision)).limit, limit)
    }
  })

  test(`${standard}: of two limiters, the one with the smallest part left is shown`, () => {
    const show = (first: SomeOptions, second: SomeOptions, used = 1) => {
      const [one, two] = [headersWith(standard, first), headersWith(standard, second)]
      two.limiter.check('key', used - 1)
      const earlier = one.written(one.limiter.check('key'))
      return readBy(standard, two.written(two.limiter.check('key'), earlier))
    }
    assert.is(show({ limit: 4 }, { limit: 5 }).limit, 4, 'the first is tighter')
    assert.is(show({ limit: 5 }, { limit: 4 }).limit, 4, 'the second is tighter')
    assert.is(
      show({ limit: 5 }, { limit: 10 }, 9).limit,
      10,
      'the second has more units, and a smaller part left',
    )
    assert.is(show({ limit: 1 }, { limit: 10 }, 11).limit, 10, 'the second refused')
    assert.is(show({ limit: 5, shadow: true }, { limit: 10 }).limit, 10, 'the first is not shown')
  })
}

test('a limiter replaces the headers of an earlier one in another form', () => {
  const [first, second] = [headersWith('draft-11'), headersWith('draft-7')]
  const earlier = first.written(first.limiter.check('key', 4))
  const headers = second.written(second.limiter.check('key'), earlier)
  assert.match(headers.get('ratelimit')!, /^limit=5, remaining=4, reset=6\d$/)
  assert.is(headers.get('ratelimit-policy'), '5;w=60')
})

test.run()
