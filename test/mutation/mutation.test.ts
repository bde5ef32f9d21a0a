import { parse } from 'acorn'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Explorer } from './explorer.js'
import { allMutations, type Mutation, mutationsOf } from './mutations.js'
import { survivors } from './survivors.js'
import { TestFiles } from './test-files.js'

const all = await allMutations()

function changesIn(code: string): string[] {
  return mutationsOf('it.js', code).map(({ name }) => name.slice(name.indexOf(': ') + 2))
}

function named(part: string): Mutation {
  const found = all.filter(({ name }) => name.includes(part))
  assert.is(found.length, 1, part)
  return found[0]!
}

for (const [code, changes] of Object.entries({
  'x = a < b': ['«x = a < b → »', 'x = a «< → <=» b'],
  'y = a & b': ['«y = a & b → »', 'y = a «& → |» b'],
  'y = a >>> 4': [
    '«y = a >>> 4 → »',
    'y = a «>>> → <<» 4',
    'y = a «>>> → >>» 4',
    'y = a >>> «4 → 5»',
    'y = a >>> «4 → 3»',
  ],
  'const y = (a + b) | 0': ['const y = (a «+ → -» b) | 0'],
  'const f = !a': ['const f = «!a → a»'],
  'const n = -a': ['const n = «-a → a»'],
  'const n = 7': ['const n = «7 → 8»'],
  'const m = Math.min(a, b)': ['const m = Math.«min → max»(a, b)'],
  'const c = a ? b : d': ['const c = «a → true» ? b : d', 'const c = «a → false» ? b : d'],
  'i++': ['«i++ → »', 'i«++ → --»'],
  'if (a && b) f()': [
    'if («a && b → true») f()',
    'if («a && b → false») f()',
    'if («a → true» && b) f()',
    'if (a && «b → true») f()',
  ],
  'if (a || b) f()': [
    'if («a || b → true») f()',
    'if («a || b → false») f()',
    'if («a → false» || b) f()',
    'if (a || «b → false») f()',
  ],
  'function f() { if (a) { g(); return true } return a === b }': [
    'function f() { if («a → true») { g(); return true } return a === b }',
    'function f() { if («a → false») { g(); return true } return a === b }',
    'function f() { if (a) { «g(); → » return true } return a === b }',
    'function f() { if (a) { g(); «return true → » } return a === b }',
    'function f() { if (a) { g(); return «true → false» } return a === b }',
    'function f() { if (a) { g(); return true } return «a === b → true» }',
    'function f() { if (a) { g(); return true } return «a === b → false» }',
  ],
  'for (;;) { if (a) continue; f() }': [
    'for (;;) { if («a → true») continue; f() }',
    'for (;;) { if («a → false») continue; f() }',
    'for (;;) { if (a) «continue; → break;» f() }',
    'for (;;) { if (a) continue; «f() → » }',
  ],
})) {
  test(`what can be wrong with: ${code}`, () => {
    assert.equal(changesIn(code).sort(), changes.sort())
  })
}

test('every mutation has a name of its own, and is code that parses', () => {
  assert.ok(all.length > 1_000)
  assert.is(new Set(all.map(({ name }) => name)).size, all.length)
  for (const { name, code } of all.filter((_, i) => i % 10 === 0)) {
    assert.not.throws(() => parse(code(), { ecmaVersion: 'latest', sourceType: 'module' }), name)
  }
})

test('the smoke, a scenario, a test file and the clock each notice what is known to be theirs', async () => {
  const explorer = new Explorer({ walks: 0, seed: 1, jobs: 1 })
  const tests = await TestFiles.create()
  try {
    const room = await explorer.glance(
      named('sliding-window.js attempt: if ((v & COUNT) + cost «> → >=» limit)'),
    )
    assert.is(room?.by, 'load', room?.what)
    const silent = await explorer.glance(named('sliding-window.js undo: «this.stale(base); → »'))
    assert.is(silent?.by, 'explorer', silent?.what)
    const endless = await explorer.glance(named('(v + ONE_EPOCH) | 0) === v → false»'))
    assert.is(endless?.by, 'hang', endless?.what)
    const share = await tests.judge(
      named('arena.js arenaIn: if («version !== LAYOUT_VERSION → false»)'),
      'first',
    )
    assert.is(share?.by, 'test', share?.what)
  } finally {
    await explorer.close()
    await tests.close()
  }
})

test('every explanation has a reason, and names a mutation that exists, once', () => {
  const names = new Set(all.map(({ name }) => name))
  const explained = survivors.flatMap(({ mutations }) => mutations)
  for (const name of explained) assert.ok(names.has(name), name)
  assert.is(new Set(explained).size, explained.length)
  for (const { why } of survivors) assert.ok(why.length > 20, why)
})

test.run()
