// run: modules
// The RateLimit headers of the drafts 8 to 11: lists of structured fields.
import { createLimiter, type Decision, group, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  DEFAULT_STANDARD,
  exposedHeaders,
  RateLimitHeaders,
  type Standard,
} from '#millrace/http/headers/headers.js'
import { assertRaises, START_MS } from '../limiter/support.js'
import { ACCESS, ceilSeconds, type Headers, headersWith, itemsOf } from './headers-support.js'

const STRUCTURED = ['draft-11', 'draft-10', 'draft-8'] as const
const BURST_AND_HOURLY = {
  rules: [
    { name: 'burst', limit: 2, window: '1s' },
    { name: 'hourly', limit: 1_000, window: '1h' },
  ],
}

for (const standard of STRUCTURED) {
  test(`${standard}: an admission shows what is left, until the whole limit is available`, () => {
    const { limiter, written } = headersWith(standard)
    const decision = limiter.check('key', 2)
    const headers = written(decision)
    assert.is(headers.get('ratelimit'), `"default";r=3;t=${ceilSeconds(decision.resetMs)}`)
    assert.is(headers.get('ratelimit-policy'), '"default";q=5;w=60')
    assert.equal([...headers.keys()].sort(), ['ratelimit', 'ratelimit-policy'])
    assert.equal(itemsOf(headers.get('ratelimit')), [
      { name: 'default', r: 3, t: ceilSeconds(decision.resetMs) },
    ])
    assert.equal(itemsOf(headers.get('ratelimit-policy')), [{ name: 'default', q: 5, w: 60 }])
  })
}

test('the default is the newest draft', () => {
  assert.is(DEFAULT_STANDARD, 'draft-11')
})

test('a refusal shows when the same request would be admitted, as Retry-After does', () => {
  const { limiter, clock, written } = headersWith('draft-11')
  limiter.check('key', 3)
  clock.advance(10_500)
  limiter.check('key')
  const decision = limiter.check('key', 2)
  assert.is(decision.allowed, false)
  const headers = written(decision)
  const seconds = ceilSeconds(decision.retryAfterMs)
  assert.is(headers.get('ratelimit'), `"default";r=1;t=${seconds}`)
  assert.is(headers.get('retry-after'), `${seconds}`)
})

test('a calendar shows the longest window of its period, and when the present one ends', () => {
  const rule = { limit: 5, algorithm: 'fixed-window', align: 'calendar', period: 'month' } as const
  const { limiter, clock, written } = headersWith('draft-11', { rules: [rule] })
  clock.set(Date.parse('2026-02-28T00:00Z'))
  const headers = written(limiter.check('key', 5))
  assert.is(headers.get('ratelimit-policy'), '"default";q=5;w=2678400')
  assert.is(headers.get('ratelimit'), '"default";r=0;t=86400')
  assert.is(written(limiter.check('key')).get('retry-after'), '86400')
})

test('a token bucket shows its burst, and the time in which that comes', () => {
  const rule = { limit: 10, window: '1s', burst: 50, algorithm: 'token-bucket' } as const
  const { limiter, written } = headersWith('draft-11', { rules: [rule] })
  const headers = written(limiter.check('key', 20))
  assert.is(headers.get('ratelimit-policy'), '"default";q=50;w=5')
  assert.is(headers.get('ratelimit'), '"default";r=30;t=2')
})

test('several rules: each has an item with its own figures', () => {
  const { limiter, written } = headersWith('draft-11', BURST_AND_HOURLY)
  const check = (allowed: boolean) => {
    const decision = limiter.check('key')
    assert.is(decision.allowed, allowed)
    const headers = written(decision)
    const items = decision.rules.map((part) => ({
      name: part.rule,
      r: part.remaining,
      t: ceilSeconds(part.allowed ? part.resetMs : part.retryAfterMs),
    }))
    assert.equal(itemsOf(headers.get('ratelimit')), items)
    assert.is(headers.get('ratelimit-policy'), '"burst";q=2;w=1, "hourly";q=1000;w=3600')
    return headers
  }
  check(true)
  check(true)
  assert.match(check(false).get('ratelimit')!, /^"burst";r=0;t=[12], "hourly";r=998;t=3\d{3}$/)
})

test('a block shows its end', () => {
  const { limiter, written } = headersWith('draft-11')
  limiter.block('key', '10m')
  const headers = written(limiter.check('key'))
  assert.is(headers.get('ratelimit'), '"default";r=0;t=600')
  assert.is(headers.get('retry-after'), '600')
})

test('a request that would never be admitted has no time and no Retry-After', () => {
  const { limiter, written } = headersWith('draft-11')
  const above = limiter.check('key', 6)
  assert.is(above.retryAfterMs, Number.POSITIVE_INFINITY)
  assert.equal(
    [...written(above)],
    [
      ['ratelimit', '"default";r=5'],
      ['ratelimit-policy', '"default";q=5;w=60'],
    ],
  )
  limiter.block('key', Number.POSITIVE_INFINITY)
  const blocked = written(limiter.check('key'))
  assert.is(blocked.get('ratelimit'), '"default";r=0')
  assert.is(blocked.has('retry-after'), false)
})

test('with several rules, only the rule that never admits has no time', () => {
  const { limiter, written } = headersWith('draft-11', BURST_AND_HOURLY)
  const headers = written(limiter.check('key', 3))
  assert.is(headers.get('ratelimit'), '"burst";r=2, "hourly";r=1000;t=0')
  assert.is(headers.has('retry-after'), false)
})

test('times above the longest timer of a client are cut: 2,147,483 seconds', () => {
  const { limiter, written } = headersWith('draft-11', { limit: 1, window: '100d', granularity: '1d' })
  const admitted = limiter.check('key')
  assert.is(itemsOf(written(admitted).get('ratelimit'))[0]!.t, ceilSeconds(admitted.resetMs))
  const headers = written(limiter.check('key'))
  assert.is(headers.get('ratelimit'), '"default";r=0;t=2147483')
  assert.is(headers.get('retry-after'), '2147483')
  assert.is(headers.get('ratelimit-policy'), '"default";q=1;w=8640000')
})

test('a window below a second is one second', () => {
  const { limiter, written } = headersWith('draft-11', { window: '250ms', granularity: '50ms' })
  const headers = written(limiter.check('key'))
  assert.is(headers.get('ratelimit'), '"default";r=4;t=1')
  assert.is(headers.get('ratelimit-policy'), '"default";q=5;w=1')
})

test('a quantity is shown as it is, up to the largest integer of a structured field', () => {
  const bytes = headersWith('draft-11', { limit: '1GB', unit: '64KB', window: '1m' })
  const decision = bytes.limiter.check('key', 100_000)
  const [item] = itemsOf(bytes.written(decision).get('ratelimit'))
  assert.is(item!.r, decision.remaining)
  assert.is(itemsOf(bytes.written(decision).get('ratelimit-policy'))[0]!.q, decision.limit)

  const huge = headersWith('draft-11', { limit: '9000TB', unit: '4TB', window: '1m' })
  const headers = huge.written(huge.limiter.check('key'))
  assert.is(itemsOf(headers.get('ratelimit'))[0]!.r, 999_999_999_999_999)
  assert.is(itemsOf(headers.get('ratelimit-policy'))[0]!.q, 999_999_999_999_999)
})

test('a limit of a call is shown, for any number of plans', () => {
  const { limiter, written } = headersWith('draft-11', { limit: 1_000 })
  for (let round = 0; round < 2; round++) {
    for (let limit = 500; limit < 700; limit++) {
      const decision = limiter.check('key', 0, { limit })
      assert.is(written(decision).get('ratelimit-policy'), `"default";q=${limit};w=60`)
    }
  }
  assert.is(written(limiter.check('key', 0)).get('ratelimit-policy'), '"default";q=1000;w=60')
})

test('a change of the limit and the window is shown at once, of the window alone after 128 decisions', () => {
  const { limiter, written } = headersWith('draft-11')
  const policy = () => written(limiter.check('key', 0)).get('ratelimit-policy')
  assert.is(policy(), '"default";q=5;w=60')
  limiter.update('default', { limit: 7, window: '2m' })
  assert.is(policy(), '"default";q=7;w=120')
  limiter.update('default', { window: '1m' })
  for (let i = 0; i < 128; i++) policy()
  assert.is(policy(), '"default";q=7;w=60')
})

test('a rule with the option shadow is not shown', () => {
  const { limiter, written } = headersWith('draft-11', {
    rules: [
      { name: 'trial', limit: 1, window: '1s', shadow: true },
      { name: 'hourly', limit: 10, window: '1h' },
    ],
  })
  for (let left = 9; left > 6; left--) {
    const headers = written(limiter.check('key'))
    assert.match(headers.get('ratelimit')!, new RegExp(`^"hourly";r=${left};t=`))
    assert.is(headers.get('ratelimit-policy'), '"hourly";q=10;w=3600')
  }
  const trial = headersWith('draft-11', { shadow: true })
  assert.equal([...trial.written(trial.limiter.check('key', 6))], [])
})

test('a limiter that follows another appends its items', () => {
  const first = headersWith('draft-11', BURST_AND_HOURLY)
  const second = headersWith('draft-8', { name: 'upload' })
  const earlier = first.written(first.limiter.check('key'))
  const headers = second.written(second.limiter.check('key'), earlier)
  assert.equal(
    itemsOf(headers.get('ratelimit')).map(({ name }) => name),
    ['burst', 'hourly', 'upload'],
  )
  const policy = '"burst";q=2;w=1, "hourly";q=1000;w=3600, "upload";q=5;w=60'
  assert.is(headers.get('ratelimit-policy'), policy)
})

test('a limiter that follows one without headers, or with those of another form, writes its own', () => {
  const { limiter, written } = headersWith('draft-11')
  const draft7 = headersWith('draft-7')
  for (const earlier of [new Map<string, string>(), draft7.written(draft7.limiter.check('key'))]) {
    const headers = written(limiter.check('key', 0), earlier)
    assert.is(headers.get('ratelimit'), '"default";r=5;t=0')
    assert.is(headers.get('ratelimit-policy'), '"default";q=5;w=60')
  }
})

test('a name is quoted', () => {
  const name = 'say "no" \\ twice; or, never'
  const { limiter, written } = headersWith('draft-11', { name })
  const headers = written(limiter.check('key'))
  assert.ok(headers.get('ratelimit')!.startsWith('"say \\"no\\" \\\\ twice; or, never";r=4'))
  for (const field of ['ratelimit', 'ratelimit-policy']) assert.is(itemsOf(headers.get(field))[0]!.name, name)
})

test('a name that a header can not hold is an error at creation, in the forms with names', () => {
  for (const name of ['línea', 'a\nb', '\u0000', 'a\r\nSet-Cookie: b', '\u007f', '😀']) {
    assertRaises(() => headersWith('draft-11', { name }), 'ERR_MILLRACE_INVALID_OPTION', 'name', name)
    const rules = [
      { name: 'good', limit: 1, window: '1s' },
      { name, limit: 2, window: '1m' },
    ]
    const error = assertRaises(
      () => headersWith('draft-8', { rules }),
      'ERR_MILLRACE_INVALID_OPTION',
      'rules[1].name',
    )
    assert.is(error.value, name)
    for (const standard of ['draft-7', 'draft-6', 'x-ratelimit', false] as const) {
      assert.not.throws(() => headersWith(standard, { name }), standard || 'false')
    }
  }
})

test('an unknown form is an error at creation', () => {
  for (const standard of ['draft-9', '', null, true, 10, undefined] as unknown as Standard[]) {
    assertRaises(() => headersWith(standard), 'ERR_MILLRACE_INVALID_OPTION', 'standard', `${standard}`)
  }
})

test('without a form, only Retry-After is written', () => {
  const { limiter, written } = headersWith(false)
  limiter.check('key', 5)
  assert.equal([...written(limiter.check('key')).keys()], ['retry-after'])
  assert.equal([...written(limiter.check('other'))], [])
})

test('an admission has no Retry-After', () => {
  const { limiter, headers } = headersWith('draft-11')
  const response: Headers = new Map()
  headers.writeRetryAfter(response, limiter.check('key'))
  assert.is(response.size, 0)
})

test('of one rule, only the figures that are shown are read, and each once', () => {
  const { limiter, written } = headersWith('draft-11')
  written(limiter.check('key')) // the first decision says whether the rule has the option shadow
  const read: string[] = []
  const spied = (decision: Decision) =>
    new Proxy(decision, {
      get(target, name) {
        read.push(String(name))
        return Reflect.get(target, name, target)
      },
    })
  const figures = (decision: Decision) => {
    read.length = 0
    written(spied(decision))
    return read.filter((name) => name !== 'allowed').sort()
  }
  assert.equal(figures(limiter.check('key', 4)), ['limit', 'remaining', 'resetMs'])
  // Retry-After reads its own.
  assert.equal(figures(limiter.check('key')), ['limit', 'remaining', 'retryAfterMs', 'retryAfterMs'])
})

test('the members of a group have the names that the rules are given', () => {
  const clock = manualClock(START_MS)
  const limiters = [10, 20].map((limit) => createLimiter({ limit, window: '1m', maxKeys: 20, clock }))
  const rules = limiters.map(({ rule }, i) => ({ ...rule, name: `member ${i}` }))
  const headers = new RateLimitHeaders('draft-11', { rules }, ACCESS)
  const members = group({ first: limiters[0]!, second: limiters[1]! })
  const response: Headers = new Map()
  headers.write(response, members.check({ first: 'key', second: 'key' }), false)
  assert.equal(
    itemsOf(response.get('ratelimit')).map(({ name, r }) => [name, r]),
    [
      ['member 0', 9],
      ['member 1', 19],
    ],
  )
})

test('Access-Control-Expose-Headers names the headers of the form', () => {
  assert.is(exposedHeaders('draft-11'), 'RateLimit, RateLimit-Policy, Retry-After')
  assert.is(exposedHeaders(false), 'Retry-After')
  for (const standard of [...STRUCTURED, 'draft-7', 'draft-6', 'x-ratelimit'] as const) {
    const { limiter, written } = headersWith(standard)
    limiter.check('key', 4)
    const names = exposedHeaders(standard).toLowerCase().split(', ')
    const allNames = new Set([
      ...written(limiter.check('key')).keys(),
      ...written(limiter.check('key')).keys(),
    ])
    assert.equal(names.sort(), [...allNames].sort(), standard)
  }
})

test('exposed headers are added to those that are exposed already, without duplicates', () => {
  const { headers } = headersWith('draft-11')
  const exposed = (present?: string) => {
    const response: Headers = new Map(
      present === undefined ? [] : [['access-control-expose-headers', present]],
    )
    for (let i = 0; i < 2; i++) headers.expose(response)
    return response.get('access-control-expose-headers')
  }
  const all = 'RateLimit, RateLimit-Policy, Retry-After'
  assert.is(exposed(), all)
  assert.is(exposed(''), all)
  assert.is(exposed('ETag'), `ETag, ${all}`)
  assert.is(exposed('ETag,retry-after ,Link'), 'ETag,retry-after ,Link, RateLimit, RateLimit-Policy')
  assert.is(exposed('*'), `*, ${all}`) // with credentials, * is a name like others
  assert.is(exposed(all), all)
  assert.is(exposed(), all)
})

test.run()
