// What each feature of the files means, asked by a client of gRPC.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Descriptor, requestOf, withEnvoy } from './stage.js'

const one = (limit: string, more = '') => `
domain: test
descriptors:
  - key: user
    ${more}
    rate_limit: { ${limit} }
`
const PER_MINUTE = 'unit: minute, requests_per_unit: 2'
const USER: Descriptor = ['user', 'alice']

test('each value of a key has a count of its own, and the answer says what is left', () =>
  withEnvoy(one(PER_MINUTE), {}, async ({ ask, codes, clock }) => {
    const { overall_code, statuses } = await ask(USER)
    assert.is(overall_code, 'OK')
    assert.equal(statuses, [
      {
        code: 'OK',
        current_limit: { requests_per_unit: 2, unit: 'MINUTE', name: '' },
        limit_remaining: 1,
        duration_until_reset: { seconds: 61, nanos: 0 },
      },
    ])
    assert.is(await codes(USER), 'ok ok')
    assert.is(await codes(USER), 'over over')
    assert.is(await codes(['user', 'bob']), 'ok ok')
    clock.advance(61_000)
    assert.is(await codes(USER), 'ok ok')
  }))

test('a refusal says when there is room', () =>
  withEnvoy(one(PER_MINUTE), {}, async ({ ask, clock }) => {
    await ask(USER)
    clock.advance(10_000)
    await ask(USER)
    const [status] = (await ask(USER)).statuses
    assert.equal(
      [status!.code, status!.limit_remaining, status!.duration_until_reset],
      ['OVER_LIMIT', 0, { seconds: 51, nanos: 0 }],
    )
  }))

const NESTED = `
domain: test
descriptors:
  - key: kind
    value: marketing
    descriptors:
      - key: number
        rate_limit: { unit: day, requests_per_unit: 1 }
      - key: number
        value: '911'
  - key: kind
    value: lonely
    rate_limit: { unit: hour, requests_per_unit: 1 }
  - key: number
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: free
  - key: forbidden
    rate_limit: { unit: second, requests_per_unit: 0 }
`

test('a limit is met by as many entries as there are levels to it', () =>
  withEnvoy(NESTED, {}, async ({ ask, codes }) => {
    const two: Descriptor = ['kind', 'marketing', 'number', '1']
    assert.is(await codes(two), 'ok ok')
    assert.is(await codes(two), 'over over')
    assert.is(await codes(['kind', 'marketing', 'number', '2']), 'ok ok')
    for (const free of [
      ['kind', 'marketing'],
      ['kind', 'marketing', 'number', '1', 'more', 'x'],
      ['kind', 'lonely', 'number', '1'],
      ['kind', 'other'],
      ['kind', 'marketing', 'number', '911'],
      ['number', '1', 'kind', 'marketing'],
      ['free', 'x'],
      ['Kind', 'lonely'],
    ])
      for (let i = 0; i < 4; i++) {
        const [status] = (await ask(free)).statuses
        assert.equal([status!.code, status!.current_limit], ['OK', null], free.join())
      }
  }))

test('a limit of 0 refuses all, and a domain that is not configured limits nothing', () =>
  withEnvoy(NESTED, {}, async ({ ask, codes, client }) => {
    assert.is(await codes(['forbidden', 'x']), 'over over')
    const [status] = (await ask(['forbidden', 'x'])).statuses
    assert.equal(status!.duration_until_reset, { seconds: 1, nanos: 0 })
    for (let i = 0; i < 3; i++)
      assert.is((await client.ask(requestOf('other', [['forbidden', 'x']]))).overall_code, 'OK')
  }))

const WILD = `
domain: test
descriptors:
  - { key: path, value: /a/b, rate_limit: { unit: minute, requests_per_unit: 5 } }
  - { key: path, value: /a/*, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: path, value: '*.png', rate_limit: { unit: minute, requests_per_unit: 3 } }
  - { key: path, value: /v*/x*/end, rate_limit: { unit: minute, requests_per_unit: 4 } }
  - { key: path, rate_limit: { unit: minute, requests_per_unit: 9 } }
`

test('an exact value comes before a pattern, patterns in their order, and both before any value', () =>
  withEnvoy(WILD, {}, async ({ ask }) => {
    const limitOf = async (path: string) =>
      (await ask(['path', path])).statuses[0]!.current_limit!.requests_per_unit
    for (const [path, limit] of [
      ['/a/b', 5],
      ['/a/', 1],
      ['/a/c.png', 1],
      ['/b/c.png', 3],
      ['.png', 3],
      ['/v1/x2/end', 4],
      ['/v/x/end', 4],
      ['/v1/end', 9],
      ['/vx/end', 9],
      ['', 9],
    ] as const)
      assert.is(await limitOf(path), limit, path)
  }))

test('values of a pattern count for themselves, and together by share_threshold, on every level', () =>
  withEnvoy(
    `
domain: test
descriptors:
  - { key: own, value: a*, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: file, value: 'files/*', share_threshold: true, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: file, value: files/own, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - key: user
    value: 'u*'
    share_threshold: true
    descriptors:
      - { key: verb, rate_limit: { unit: minute, requests_per_unit: 1 } }
`,
    {},
    async ({ codes }) => {
      assert.is(await codes(['own', 'a1']), 'ok ok')
      assert.is(await codes(['own', 'a2']), 'ok ok')
      assert.is(await codes(['file', 'files/a']), 'ok ok')
      assert.is(await codes(['file', 'files/b']), 'over over')
      assert.is(await codes(['file', 'files/own']), 'ok ok')
      assert.is(await codes(['user', 'u1', 'verb', 'get']), 'ok ok')
      assert.is(await codes(['user', 'u2', 'verb', 'get']), 'over over')
      assert.is(await codes(['user', 'u2', 'verb', 'put']), 'ok ok')
    },
  ))

test('unlimited is admitted with the largest number left', () =>
  withEnvoy(one('unlimited: true'), {}, async ({ ask }) => {
    const [status] = (await ask(USER)).statuses
    assert.equal([status!.code, status!.limit_remaining, status!.current_limit], ['OK', 2 ** 32 - 1, null])
  }))

const REPLACING = `
domain: test
descriptors:
  - { key: a, rate_limit: { name: first, unit: minute, requests_per_unit: 1 } }
  - { key: b, rate_limit: { name: second, unit: minute, requests_per_unit: 1 } }
  - { key: c, rate_limit: { unit: minute, requests_per_unit: 3, replaces: [{ name: first }, { name: second }] } }
`

test('a limit takes the place of those that it replaces, and only in requests that meet it', () =>
  withEnvoy(REPLACING, {}, async ({ ask, codes }) => {
    const both: Descriptor[] = [
      ['a', 'x'],
      ['b', 'x'],
      ['c', 'x'],
    ]
    for (let i = 0; i < 3; i++) assert.is(await codes(...both), 'ok ok ok ok')
    const { statuses } = await ask(...both)
    assert.equal(
      statuses.map(({ code, current_limit }) => [code, current_limit?.requests_per_unit]),
      [
        ['OK', undefined],
        ['OK', undefined],
        ['OVER_LIMIT', 3],
      ],
    )
    assert.is(await codes(['a', 'x']), 'ok ok', 'it was not charged')
    const [status] = (await ask(['a', 'y'])).statuses
    assert.is(status!.current_limit!.name, 'first')
    assert.is(await codes(['a', 'x']), 'over over')
  }))

for (const envoyDecide of ['together', 'each'] as const) {
  test(`${envoyDecide}: a limit with shadow_mode admits all, charges as if it did not, and refuses for no other`, () =>
    withEnvoy(
      `${one(PER_MINUTE, 'shadow_mode: true')}
  - { key: page, rate_limit: { unit: minute, requests_per_unit: 4 } }
`,
      { envoyDecide },
      async ({ ask, codes, clock }) => {
        for (let i = 0; i < 4; i++) assert.is(await codes(USER, ['page', 'x']), 'ok ok ok')
        assert.is(await codes(USER, ['page', 'x']), 'over ok over')
        const [status] = (await ask(USER)).statuses
        assert.is(status!.limit_remaining, 0)
        clock.advance(61_000)
        assert.is((await ask(USER)).statuses[0]!.limit_remaining, 1)
      },
    ))

  test(`${envoyDecide}: envoyShadow admits all, and the statuses say what is over`, () =>
    withEnvoy(one(PER_MINUTE), { envoyShadow: true, envoyDecide }, async ({ codes }) => {
      for (let i = 0; i < 2; i++) assert.is(await codes(USER), 'ok ok')
      assert.is(await codes(USER), 'ok over')
    }))
}

const UNITS = [
  ...[
    ['second', 1],
    ['minute', 60],
    ['hour', 3_600],
    ['day', 86_400],
    ['week', 7 * 86_400],
    ['month', 30 * 86_400],
    ['year', 365 * 86_400],
  ],
] as const

for (const [unit, seconds] of UNITS)
  for (const times of [1, 3])
    test(`a window of ${times} ${unit}`, () =>
      withEnvoy(
        one(`unit: ${unit}, requests_per_unit: 1${times === 1 ? '' : `, unit_multiplier: ${times}`}`),
        {},
        async ({ ask, codes, clock }) => {
          const { statuses } = await ask(USER)
          assert.is(statuses[0]!.current_limit!.unit, String(unit).toUpperCase())
          clock.advance(Number(seconds) * times * 1_000 - 1)
          assert.is(await codes(USER), 'over over')
          clock.advance(Number(seconds) * times * 50)
          assert.is(await codes(USER), 'ok ok')
        },
      ))

test('the days, weeks, months and years of a time zone', () =>
  withEnvoy(
    `
domain: test
descriptors:
  - { key: month, rate_limit: { unit: month, requests_per_unit: 2, algorithm: fixed-window, align: calendar, time_zone: America/New_York } }
  - { key: day, rate_limit: { unit: day, requests_per_unit: 2, algorithm: fixed-window, align: calendar } }
`,
    {},
    async ({ ask, codes, clock }) => {
      const now = clock.now() / 1_000 // 1 January 1970, 00:16:40 in UTC, and the evening before in New York
      const limits = { month: 5 * 3_600, day: 86_400 } as const
      for (const [key, endsAt] of Object.entries(limits)) {
        const { current_limit, duration_until_reset } = (await ask([key, 'x'])).statuses[0]!
        assert.equal(current_limit, { requests_per_unit: 2, unit: key.toUpperCase(), name: '' })
        assert.equal(duration_until_reset, { seconds: endsAt - now, nanos: 0 })
        assert.is(await codes([key, 'x']), 'ok ok')
        assert.is(await codes([key, 'x']), 'over over')
      }
      clock.set(5 * 3_600_000)
      assert.is(await codes(['month', 'x']), 'ok ok')
      assert.is(await codes(['day', 'x']), 'over over')
    },
  ))

test('a window, an algorithm and a granularity of our own', () =>
  withEnvoy(
    `
domain: test
descriptors:
  - { key: any, rate_limit: { window: 90s, requests_per_unit: 2, granularity: 45s } }
  - { key: minute, rate_limit: { window: 60s, requests_per_unit: 2 } }
  - { key: fixed, rate_limit: { window: 10s, requests_per_unit: 1, algorithm: fixed-window } }
  - { key: bucket, rate_limit: { window: 10s, requests_per_unit: 2, algorithm: token-bucket } }
  - { key: log, rate_limit: { window: 10s, requests_per_unit: 2, algorithm: sliding-log } }
`,
    {},
    async ({ ask, codes, clock }) => {
      const first = async (key: string) => (await ask([key, 'x'])).statuses[0]!
      const any = await first('any')
      assert.equal(
        [any.current_limit, any.duration_until_reset],
        [
          { requests_per_unit: 2, unit: 'UNKNOWN_UNIT', name: '' },
          { seconds: 125, nanos: 0 },
        ],
      )
      assert.is((await first('minute')).current_limit!.unit, 'MINUTE')
      await first('fixed')
      assert.is(await codes(['fixed', 'x']), 'over over')
      for (const key of ['bucket', 'log']) {
        await first(key)
        await first(key)
        assert.is(await codes([key, 'x']), 'over over', key)
      }
      clock.advance(5_000)
      assert.is(await codes(['bucket', 'x']), 'ok ok', 'half of the window fills half of the bucket')
      assert.is(await codes(['log', 'x']), 'over over')
      clock.advance(5_001)
      assert.is(await codes(['log', 'x']), 'ok ok')
      assert.is(await codes(['fixed', 'x']), 'ok ok')
    },
  ))

/** The most admissions in any minute, of bursts of twice the limit at the end of a minute, and steady load of twice it. */
async function mostInAMinute(algorithm: string): Promise<number> {
  const admitted: number[] = []
  await withEnvoy(
    one(`unit: minute, requests_per_unit: 6, algorithm: ${algorithm}`),
    {},
    async ({ codes, clock }) => {
      let nowMs = 1_000_000
      const goTo = (ms: number) => {
        clock.advance(ms - nowMs)
        nowMs = ms
      }
      const ask = async () => {
        if ((await codes(USER)) === 'ok ok') admitted.push(nowMs)
      }
      for (const atMs of [1_079_000, 1_080_500]) {
        goTo(atMs)
        for (let i = 0; i < 12; i++) await ask()
      }
      for (let i = 1; i <= 36; i++) {
        goTo(1_080_500 + i * 5_000)
        await ask()
      }
    },
  )
  return Math.max(...admitted.map((from) => admitted.filter((ms) => ms >= from && ms < from + 60_000).length))
}

test("at a minute's turn no minute has more than its limit, where a fixed window has twice as much", async () => {
  assert.is(await mostInAMinute('sliding-window'), 6)
  assert.is(await mostInAMinute('fixed-window'), 12)
})

test('one domain over several files', () =>
  withEnvoy(
    {
      'a.yaml': one(PER_MINUTE),
      'b.yaml': 'domain: test\ndescriptors: [{ key: page, rate_limit: { unit: day, requests_per_unit: 1 } }]',
      'c.yaml':
        'domain: other\ndescriptors: [{ key: user, rate_limit: { unit: day, requests_per_unit: 1 } }]',
    },
    {},
    async ({ codes, client }) => {
      assert.is(await codes(USER, ['page', 'x']), 'ok ok ok')
      assert.is(await codes(USER, ['page', 'x']), 'over ok over')
      const other = () => client.ask(requestOf('other', [USER]))
      assert.is((await other()).overall_code, 'OK')
      assert.is((await other()).overall_code, 'OVER_LIMIT', 'domains count apart')
    },
  ))

test('a limit that the request brings holds in a domain that is known, and counts with the same descriptor', () =>
  withEnvoy(one(PER_MINUTE), {}, async ({ ask, codes }) => {
    const brought = (unit: string, requests_per_unit: number, user = 'x'): Descriptor => ({
      entries: ['user', user],
      limit: { unit, requests_per_unit },
    })
    const { statuses } = await ask(brought('MINUTE', 4))
    assert.equal(
      [statuses[0]!.current_limit, statuses[0]!.limit_remaining],
      [{ requests_per_unit: 4, unit: 'MINUTE', name: '' }, 3],
    )
    assert.is(await codes(['user', 'x']), 'ok ok')
    assert.is(await codes(['user', 'x']), 'over over')
    assert.is(await codes(brought('MINUTE', 4)), 'ok ok')
    assert.is(await codes(brought('YEAR', 1, 'y')), 'ok ok')
    assert.is(await codes(brought('YEAR', 1, 'y')), 'over over')
    assert.is(await codes(brought('SECOND', 0, 'z')), 'over over')
  }))

test('hits of the request and of a descriptor', () =>
  withEnvoy(one('unit: minute, requests_per_unit: 10'), {}, async ({ client }) => {
    const left = async (descriptors: Descriptor[], more: object) =>
      (await client.ask(requestOf('test', descriptors, more))).statuses.map((each) => [
        each.code,
        each.limit_remaining,
      ])
    assert.equal(await left([['user', 'a']], { hits_addend: 3 }), [['OK', 7]])
    assert.equal(await left([{ entries: ['user', 'a'], hits_addend: { value: 2 } }], { hits_addend: 9 }), [
      ['OK', 5],
    ])
    assert.equal(await left([['user', 'a']], { hits_addend: 6 }), [['OVER_LIMIT', 5]])
    const probe = { entries: ['user', 'a'], hits_addend: { value: 0 } }
    assert.equal(await left([probe], {}), [['OK', 5]], 'no hits ask, and charge nothing')
    assert.equal(await left([['user', 'a']], { hits_addend: 5 }), [['OK', 0]])
    assert.equal(await left([probe], {}), [['OVER_LIMIT', 0]])
    assert.equal(await left([['user', 'b'], probe], {}), [
      ['OK', 10],
      ['OVER_LIMIT', 0],
    ])
  }))

test('the headers are those of the limit with the least left', () =>
  withEnvoy(
    `${one(PER_MINUTE)}  - { key: page, rate_limit: { unit: hour, requests_per_unit: 2 } }`,
    { envoyHeaders: ['RateLimit-Limit', 'RateLimit-Remaining', 'x-reset'] },
    async ({ ask }) => {
      await ask(['page', 'x'])
      const { response_headers_to_add } = await ask(USER, ['page', 'x'])
      assert.equal(
        response_headers_to_add.map(({ key, value }) => `${key}: ${value}`),
        ['RateLimit-Limit: 2', 'RateLimit-Remaining: 0', 'x-reset: 3620'],
      )
      assert.equal((await ask(['free', 'x'])).response_headers_to_add, [])
    },
  ))

test.run()
