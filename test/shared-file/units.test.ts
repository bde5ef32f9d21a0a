// A shared file keeps the unit of its rule.
// run: addon
import { attachLimiter, createLimiter, type LimiterOptions, type RuleOptions } from 'millrace'
import * as assert from 'uvu/assert'
import { assertRaises } from '../limiter/support.js'
import { test } from '../native/addon-test.js'
import { folder, withMembers } from './processes.js'

const at = folder()
const options = { limit: '10GB', unit: '64KB', window: '1d', maxKeys: 100 } as const
const open = (file: string, more: Partial<LimiterOptions> = {}) =>
  createLimiter({ ...options, shared: { file }, ...more })

test('opening a file with another unit, or without one, throws an error with both, and changes no limit', () => {
  const file = at('one')
  const first = open(file)
  for (const [unit, limit, shown] of [
    ['64KiB', '10GB', '65536'],
    ['1MB', '1GB', '1000000'],
    [1, 1_000, '1'],
    [undefined, 1_000, 'none'],
  ] as const) {
    const act = () => open(file, { unit: unit as never, limit })
    const { message } = assertRaises(act, 'ERR_MILLRACE_SHARED_MISMATCH', 'unit', file)
    assert.match(message, new RegExp(`unit 64000 .*"unit ${shown}"`))
  }
  assert.equal([first.rule.limit, first.rule.unit], [10e9, 64_000])
  void first.close()
  const plain = open(at('plain'), { unit: undefined as never, limit: 5 })
  const { message } = assertRaises(() => open(at('plain')), 'ERR_MILLRACE_SHARED_MISMATCH', 'unit')
  assert.match(message, /unit none .*"unit 64000"/)
  void plain.close()
})

test('the same unit in another notation opens the file again: counts stay, and the last limit holds', async () => {
  const file = at('again')
  const first = open(file)
  first.check('key', 100_000)
  const second = open(file, { limit: '20GB', unit: 64_000 })
  assert.is(first.rule.limit, 20e9)
  assert.is(second.check('key', 1).remaining, 20e9 - 192_000)
  await first.close()
  await second.close()
  const third = open(file)
  assert.is(third.usage('key'), 192_000)
  const attached = attachLimiter(third.share())
  assert.equal([attached.usage('key'), attached.rule], [192_000, third.rule])
  await attached.close()
  await third.close()
})

test('the error for another unit of a rule names the index of the rule', async () => {
  const file = at('rules')
  const rules = (unit: RuleOptions['unit']): RuleOptions[] => [
    { name: 'requests', limit: 1_000, window: '1m' },
    { name: 'bytes', limit: 1e9, unit: unit!, window: '1d' },
  ]
  const create = (unit: RuleOptions['unit']) =>
    createLimiter({ rules: rules(unit), maxKeys: 100, shared: { file } })
  const first = create('1KB')
  assertRaises(() => create('2KB'), 'ERR_MILLRACE_SHARED_MISMATCH', 'rules[1].unit', file)
  first.check('key', 500)
  await first.close()
  const second = create('1KB')
  assert.equal([second.usage('key'), second.usage('key', '1d', { rule: 'bytes' })], [500, 1_000])
  await second.close()
})

test('pools with one file share a limit in units', async () => {
  const file = at('pools')
  const create = () =>
    createLimiter({ ...options, shared: { file }, engine: 'pool', pool: { maxThreads: 1 } })
  const [one, other] = [create(), create()]
  assert.is((await one.check('key', 5e9)).remaining, 10e9 - 78_125 * 64_000)
  assert.not((await other.check('key', 5e9 + 64_000)).allowed)
  assert.is((await other.reserve('key', 5e9)).decision.remaining, 0)
  assert.is(await one.usage('key'), 10e9)
  await Promise.all([one.close(), other.close()])
})

test('processes with one file share a limit in units', async () => {
  const file = at('processes')
  await withMembers(2, async (members) => {
    for (const member of members) await member.open({ ...options, limit: '640KB', shared: { file } })
    const admitted = await Promise.all(members.map((member) => member.check('key', 20)))
    assert.is(admitted[0]! + admitted[1]!, 10)
  })
})

test.run()
