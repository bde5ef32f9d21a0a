// run: typescript
import { inspect } from 'node:util'
import { attachLimiter, createLimiter, manualClock, type RuleOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { HEADER, HEADER_WORDS } from '#millrace/memory/layout.js'
import { assertRaises, assertSame } from './support.js'

const FIRST = { name: 'first', limit: 5, window: '1s' } as const
const SECOND = { name: 'second', limit: 50, window: '1m' } as const
const create = (rules: unknown, more: object = {}) =>
  createLimiter({ rules: rules as RuleOptions[], maxKeys: 20, ...more })

test('rules that are not an array of 1 to 16 are refused', () => {
  const many = Array.from({ length: 17 }, (_, i) => ({ ...FIRST, name: `${i}` }))
  for (const rules of [null, 5, 'first', {}, FIRST, [], many]) {
    const { expected } = assertRaises(
      () => create(rules),
      'ERR_MILLRACE_INVALID_RULE',
      'rules',
      inspect(rules),
    )
    assert.match(expected, '1 to 16')
  }
  assert.is(create(many.slice(1)).rules.length, 16)
})

test('the error for a wrong option of a rule names the index of the rule', () => {
  const wrong: [option: string, value: unknown][] = [
    ['limit', 0],
    ['limit', undefined],
    ['window', 'soon'],
    ['granularity', '7s'],
    ['granularity', '0.000001ms'],
    ['edge', 'soft'],
    ['algorithm', 'token'],
    ['rangeSum', 'tree'],
    ['rangeSum', 'blocks'],
    ['name', 5],
    ['name', ''],
  ]
  for (const [option, value] of wrong) {
    const act = () => create([FIRST, { ...SECOND, [option]: value }])
    const error = assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', `rules[1].${option}`, inspect(value))
    assertSame(error.value, value)
  }
})

test('a rule that is not an object, or has an unknown option, is refused', () => {
  for (const rule of [undefined, null, 5, 'first']) {
    assertRaises(() => create([FIRST, rule]), 'ERR_MILLRACE_INVALID_RULE', 'rules[1]', inspect(rule))
  }
  for (const name of ['limt', 'maxKeys', 'rules']) {
    const act = () => create([{ ...FIRST, [name]: 1 }])
    const { message } = assertRaises(act, 'ERR_MILLRACE_INVALID_RULE', 'rules[0]')
    assert.match(message, `"${name}"`)
    assert.match(message, 'granularity')
  }
})

test('two rules with the same name, or a rule without a name among several, are refused', () => {
  const twice = () => create([FIRST, SECOND, { ...SECOND, limit: 7 }])
  assert.match(assertRaises(twice, 'ERR_MILLRACE_INVALID_RULE', 'rules[2].name').message, 'that of rules[1]')
  const { name, ...nameless } = SECOND
  assertRaises(() => create([FIRST, nameless]), 'ERR_MILLRACE_INVALID_RULE', 'rules[1].name', name)
  assert.is(create([nameless]).rule.name, 'default')
})

test('an option of a single rule next to `rules` is refused by its name', () => {
  for (const [option, value] of Object.entries({ ...SECOND, granularity: '1s', edge: 'smooth' })) {
    const act = () => create([FIRST], { [option]: value })
    const { expected } = assertRaises(act, 'ERR_MILLRACE_INVALID_OPTION', option)
    assert.match(expected, 'rules')
  }
})

test('rules that need more memory than can be allocated are refused, and the error has the bytes', () => {
  const daily = { name: 'daily', limit: 5, window: '1d', granularity: '1s', rangeSum: 'blocks' } as const
  for (const rules of [
    [FIRST, daily],
    [daily, FIRST],
  ]) {
    const act = () => create(rules, { maxKeys: 2 ** 40 })
    const error = assertRaises(act, 'ERR_MILLRACE_ARENA_TOO_LARGE', 'maxKeys')
    assert.ok(Number(/needs (\S+) bytes/.exec(error.message)?.[1]) > 2 ** 40)
  }
})

test('each option of each rule is read once', () => {
  const reads: string[] = []
  const traced = (rule: object, i: number) =>
    new Proxy(rule, {
      get: (target, name) => {
        reads.push(`${i} ${String(name)}`)
        return Reflect.get(target, name)
      },
    })
  const options = { rules: [FIRST, SECOND].map(traced) as unknown as RuleOptions[], maxKeys: 20 }
  const limiter = createLimiter(options)
  assert.is(new Set(reads).size, reads.length, reads.join(', '))
  assert.equal(
    limiter.rules.map(({ limit }) => limit),
    [5, 50],
  )
})

test('if a reading is too far off for one rule, no rule is charged', () => {
  let nowMs = 1e6
  const coarse = { name: 'coarse', limit: 5, window: '10000d', granularity: '1000d' } as const
  const limiter = create([coarse, { ...FIRST, window: 1 }], { clock: { now: () => nowMs } })
  limiter.check('key')
  nowMs = Number.MAX_SAFE_INTEGER - 1
  assertRaises(() => limiter.check('key'), 'ERR_MILLRACE_INVALID_CLOCK', 'clock.now()')
  nowMs = 1e6
  assert.is(limiter.usage('key'), 1)
})

test('if the clock fails when a later rule inserts its key, nothing stays charged', () => {
  let [nowMs, readings] = [1e6, 0]
  let failAt = Number.POSITIVE_INFINITY
  const clock = { now: () => (++readings >= failAt ? Number.NaN : nowMs) }
  const limiter = create([FIRST, SECOND], { clock })
  limiter.check('warm')
  for (let after = 1; after < 10; after++) {
    nowMs += 60_000
    const key = `key ${after}`
    failAt = readings + after
    let failed = false
    try {
      limiter.check(key)
    } catch (error) {
      assert.is((error as { option: string }).option, 'clock.now()')
      failed = true
    }
    failAt = Number.POSITIVE_INFINITY
    const used = [FIRST, SECOND].map(({ name }) => limiter.usage(key, undefined, { rule: name }))
    assert.equal(used, failed ? [0, 0] : [1, 1], `a reading that fails: ${after}`)
    if (!failed) return assert.ok(after > 2, 'insertions of both rules read the clock')
  }
  assert.unreachable('the clock is read fewer times')
})

/** A share of two rules with a copy of the memory, which the test may damage. */
function copyOfShare() {
  const share = create([FIRST, SECOND], { clock: manualClock(1e6) }).share()
  const buffer = new SharedArrayBuffer(share.buffer.byteLength)
  new Int32Array(buffer).set(new Int32Array(share.buffer))
  const second = new Int32Array(buffer).lastIndexOf(0x6d696c6c)
  return { share: { ...share, buffer }, words: new Int32Array(buffer), second }
}

test('a share of several rules is structured-cloneable, with the names of the rules', () => {
  const limiter = create([FIRST, SECOND])
  limiter.check('key', 3)
  const attached = attachLimiter(structuredClone(limiter.share()))
  assert.equal(attached.rules, limiter.rules)
  assert.not(attached.check('key', 3).allowed)
  assert.is(limiter.usage('key', undefined, { rule: 'second' }), 3)
  limiter.update('second', { limit: 9 })
  assert.is(attached.rules[1]!.limit, 9)
  assert.equal(attachLimiter(attached.share()).rules, attached.rules, 'it can be shared again')
})

test('a share whose names are not those of its rules is refused', () => {
  const { share } = copyOfShare()
  for (const rules of [null, 5, 'first', [], ['second', 'first'], ['first', 5], ['first', 'first']]) {
    const act = () => attachLimiter({ ...share, rules: rules as never })
    assertRaises(act, 'ERR_MILLRACE_INVALID_SHARE', 'shared.rules', inspect(rules))
  }
  for (const rules of [undefined, ['first'], ['first', 'second', 'third']]) {
    const act = () => attachLimiter({ ...share, rules: rules as never })
    assertRaises(act, 'ERR_MILLRACE_INVALID_SHARE', 'shared.buffer', inspect(rules))
  }
})

test('memory whose second arena is damaged, missing or cut short is refused', () => {
  const damages: [at: (second: number) => number, value: number][] = [
    [() => HEADER.FOLLOWING, 0],
    [() => HEADER.FOLLOWING, 2],
    [() => HEADER.FOLLOWING, -1],
    [() => HEADER.FOLLOWING, 2 ** 31 - 1],
    [(second) => second + HEADER.MAGIC, 0],
    [(second) => second + HEADER.FOLLOWING, 1],
    [(second) => second + HEADER.SEED_0, 12345],
    [(second) => second + HEADER.SETS, 1_000_000],
    [() => HEADER.SETS, 3],
  ]
  for (const [at, value] of damages) {
    const { share, words, second } = copyOfShare()
    assert.not(words[at(second)] === value)
    words[at(second)] = value
    assertRaises(() => attachLimiter(share), 'ERR_MILLRACE_INVALID_SHARE', 'shared.buffer', `${at} ${value}`)
  }
  for (const cut of [4, 4 * HEADER_WORDS, 8_192]) {
    const { share } = copyOfShare()
    const buffer = share.buffer.slice(0, share.buffer.byteLength - cut)
    const act = () => attachLimiter({ ...share, buffer })
    assertRaises(act, 'ERR_MILLRACE_INVALID_SHARE', 'shared.buffer', `${cut} bytes less`)
  }
})

test('if a reading is too far off for the new window of a later rule, the rules before it charge nothing', () => {
  const clock = manualClock(2 ** 49 - 1_000)
  const rule = { limit: 10, window: '10h', granularity: '1h' } as const
  const rules = [
    { name: 'first', ...rule },
    { name: 'second', ...rule },
  ]
  const limiter = create(rules, { clock })
  limiter.check('key', 2)
  const attached = attachLimiter(limiter.share(), { clock })
  attached.peek('key') // knows the window of before
  attachLimiter(limiter.share(), { clock }).update('second', { window: 10, granularity: 1 })
  clock.advance(1_500)
  assert.throws(() => attached.check('key'), /clock.now\(\): expected milliseconds small enough/)
  clock.set(2 ** 49 - 1)
  assert.is(limiter.usage('key', undefined, { rule: 'first' }), 2)
})

test.run()
