// run: typescript
import { inspect } from 'node:util'
import { createLimiter, MillraceError, type RuleOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { decidedBy, ENGINES } from '../engines/both.js'
import { assertRaises, assertRejects, assertSame } from './support.js'

const create = (options: object) => createLimiter({ window: '1m', maxKeys: 20, ...options } as never)
const NO_SIZES = [
  0,
  -1,
  0.5,
  2 ** 53,
  Number.NaN,
  null,
  5n,
  {},
  '',
  '0KB',
  '1.5B',
  '10 GB',
  '10gb',
  '1PB',
  'ten',
]

test('a unit or a limit that is not a size is refused by name', () => {
  for (const value of NO_SIZES) {
    for (const [option, other] of [
      ['unit', { limit: 100 }],
      ['limit', { unit: 10 }],
    ] as const) {
      const act = () => create({ ...other, [option]: value })
      const error = assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', option, inspect(value))
      assert.match(error.expected, 'a size such as')
      assertSame(error.value, value)
    }
  }
})

test('a limit of less than a unit is refused', () => {
  for (const [limit, unit] of [
    [9, 10],
    ['63.999KB', '64KB'],
    [1, Number.MAX_SAFE_INTEGER],
  ]) {
    const { expected } = assertRaises(() => create({ limit, unit }), 'ERR_MILLRACE_INVALID_RULE', 'limit')
    assert.match(expected, 'at least the unit')
  }
  assert.is(create({ limit: '64KB', unit: '64KB' }).check('key', 64_000).remaining, 0)
})

test('a limit of more than 2^22 - 2 units is refused, and the error names a unit that fits', () => {
  const limits: [limit: unknown, unit: unknown, fitting: string][] = [
    ['10GB', '1KB', "unit: '5KB'"],
    ['10GB', undefined, "unit: '5KB'"],
    [1e9, 100, 'unit: 500'],
    [1e9, undefined, 'unit: 500'],
    [4_194_303, undefined, 'unit: 2'],
    [8_388_606, 2, 'unit: 5'],
    [4_194_302_000 + 1_000, 1_000, 'unit: 2000'],
    ['9TB', '1B', "unit: '5MB'"],
    [Number.MAX_SAFE_INTEGER, 1, 'unit: 5000000000'],
  ]
  for (const [limit, unit, fitting] of limits) {
    const act = () => create({ limit, unit })
    const error = assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', 'limit', `${limit}`)
    assert.match(error.message, `${fitting}`)
    assert.match(error.message, '4194302')
    const named = /unit: '?(\w+)'?/.exec(error.message)![1]!
    assert.ok(create({ limit, unit: named }).rule.limit > 0, `${limit} with unit ${named}`)
  }
  assert.is(create({ limit: 4_194_302_999, unit: 1_000 }).rule.limit, 4_194_302_000)
})

test('without a unit, a size as the limit is refused, and the error says that it needs a unit', () => {
  for (const limit of ['1KB', '4MB']) {
    const { expected } = assertRaises(() => create({ limit }), 'ERR_MILLRACE_INVALID_RULE', 'limit')
    assert.match(expected, 'option unit')
  }
})

test('the error for a wrong unit of a rule names the index of the rule', () => {
  const rules = (unit: unknown, limit: unknown) =>
    [
      { name: 'a', limit: 5, window: '1m' },
      { name: 'b', limit, unit, window: '1m' },
    ] as RuleOptions[]
  const act = (unit: unknown, limit: unknown) => () =>
    createLimiter({ rules: rules(unit, limit), maxKeys: 20 })
  assertRaises(act('x', 5), 'ERR_MILLRACE_INVALID_RULE', 'rules[1].unit')
  assertRaises(act(10, 5), 'ERR_MILLRACE_INVALID_RULE', 'rules[1].limit')
  const beside = { rules: rules(1, 5), unit: 5, maxKeys: 20 } as never
  assertRaises(() => createLimiter(beside), 'ERR_MILLRACE_INVALID_OPTION', 'unit')
})

test('limit and unit are read once', () => {
  let reads = 0
  const changing = (first: unknown) => ({ enumerable: true, get: () => (reads++ === 0 ? first : 'later') })
  for (const [name, first] of [
    ['limit', '640KB'],
    ['unit', '64KB'],
  ] as const) {
    reads = 0
    const options = { limit: '640KB', unit: '64KB', window: '1m', maxKeys: 20 } as const
    const limiter = createLimiter(Object.defineProperty({ ...options }, name, changing(first)))
    assert.equal([limiter.rule.limit, limiter.rule.unit, reads], [640_000, 64_000, 1])
  }
})

for (const engine of ENGINES) {
  test(`${engine}: costs that are not integers of 0 or more are refused, and nothing is charged`, async () => {
    await using made = decidedBy(engine, { limit: '640KB', unit: '64KB' })
    const { limiter } = made
    const call = (act: () => unknown) => async () => act()
    for (const cost of [-1, 0.5, Number.NaN, '64KB', null, 5n] as never[]) {
      for (const act of [
        call(() => limiter.check('key', cost)),
        call(() => limiter.peek('key', cost)),
        call(() => limiter.reserve('key', cost)),
        call(() => limiter.refund('key', cost)),
        call(() => limiter.penalize('key', cost)),
        call(() => limiter.wait('key', { cost })),
      ]) {
        const { value } = await assertRejects(act, 'ERR_MILLRACE_INVALID_COST', 'cost')
        assertSame(value, cost)
      }
      const batch = call(() => limiter.checkMany(['key', 'key'], [1, cost]))
      await assertRejects(batch, 'ERR_MILLRACE_INVALID_COST', 'costs[1]')
    }
    assert.is(await limiter.usage('key'), 0)
  })

  test(`${engine}: the bound of a penalty and of an actual cost is that of a bucket, as a quantity`, async () => {
    await using made = decidedBy(engine, { limit: '640KB', unit: '64KB' })
    const { limiter } = made
    const most = 4_194_303 * 64_000
    const penalize = async () => limiter.penalize('key', most + 1)
    assert.match((await assertRejects(penalize, 'ERR_MILLRACE_INVALID_COST', 'cost')).expected, `${most}`)
    const reservation = await limiter.reserve('key', 100)
    const commit = async () => reservation.commit(100 + most + 1)
    const { expected } = await assertRejects(commit, 'ERR_MILLRACE_INVALID_COST', 'actualCost')
    assert.match(expected, `${100 + most}`)
    assert.is(await reservation.commit(100 + most), most)
  })

  test(`${engine}: limits that are not sizes of 1 to 2^22 - 2 units are refused by update and in a call`, async () => {
    await using made = decidedBy(engine, { limit: '640KB', unit: '64KB' })
    const { limiter } = made
    const most = 4_194_302 * 64_000
    for (const limit of [...NO_SIZES, 63_999, '63KB', most + 64_000, '1TB'] as never[]) {
      const update = async () => limiter.update('default', { limit })
      assertSame((await assertRejects(update, 'ERR_MILLRACE_INVALID_RULE', 'limit')).value, limit)
      if (limit === 0 || limit === Number.POSITIVE_INFINITY) continue // a call may have them
      const check = async () => limiter.check('key', 1, { limit })
      assertSame((await assertRejects(check, 'ERR_MILLRACE_INVALID_OPTION', 'limit')).value, limit)
    }
    assert.is(limiter.rule.limit, 640_000)
    await limiter.update('default', { limit: most })
    assert.is(limiter.rule.limit, most)
    const withUnit = async () => limiter.update('default', { limit: 640_000, unit: 5 } as never)
    await assertRejects(withUnit, 'ERR_MILLRACE_INVALID_OPTION', 'change')
  })

  test(`${engine}: a closed limiter with a unit refuses every call`, async () => {
    const { limiter } = decidedBy(engine, { limit: '640KB', unit: '64KB' })
    const reservation = await limiter.reserve('key', 100)
    await limiter.close()
    for (const act of [
      async () => limiter.check('key', 1),
      async () => limiter.check(limiter.handle('key'), 1),
      async () => limiter.peek('key', 1),
      async () => limiter.usage('key'),
      async () => limiter.refund(reservation.decision),
      async () => limiter.update('default', { limit: '1GB' }),
      async () => reservation.commit(1),
    ]) {
      await assertRejects(act, 'ERR_MILLRACE_CLOSED', 'limiter')
    }
    assert.ok(reservation.decision.remaining === 576_000)
  })
}

test('every error is a MillraceError', () => {
  assert.throws(
    () => create({ limit: 5, unit: Symbol('unit') }),
    (error: unknown) => error instanceof MillraceError,
  )
})

test.run()
