// run: typescript
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const { foldConstants } = (await import(
  new URL('../../../scripts/fold-constants.mjs', import.meta.url).href
)) as { foldConstants(codes: Map<string, string>): Map<string, string> }

const folded = (codes: Record<string, string>, file = 'a.js') =>
  foldConstants(new Map(Object.entries(codes))).get(file)

test('a numeric constant is replaced by its value, also an imported or computed one', () => {
  const codes = {
    'memory/b.js': 'export const BITS = 22\nexport const MASK = 2 ** BITS - 1\nexport const NONE = -1',
    'a.js': "import { MASK, NONE as NO } from './memory/b.js'\nexport const f = (x) => x & MASK || NO",
  }
  assert.is(
    folded(codes),
    "import { MASK, NONE as NO } from './memory/b.js'\nexport const f = (x) => x & 4194303 /* MASK */ || (-1) /* NO */",
  )
})

test('a property of an object of numbers is replaced, and an unknown property is not', () => {
  const code = 'const OP = { ADD: 1, TAKE: -1 }\nf(OP.ADD, OP.TAKE, OP.other, OP[x], y.OP)'
  const expected =
    'const OP = { ADD: 1, TAKE: -1 }\nf(1 /* OP.ADD */, (-1) /* OP.TAKE */, OP.other, OP[x], y.OP)'
  assert.is(folded({ 'a.js': code }), expected)
})

test('a name that is local somewhere in the file is not replaced in that file', () => {
  for (const local of [
    'function f(N) { return N }',
    'const f = ({ a: [N = 1] }) => N',
    'for (const N of list) g(N)',
    'try { g() } catch (N) { g(N) }',
    'const f = (...N) => N',
    '{ let N = 2; g(N) }',
  ]) {
    const code = `const N = 3\n${local}`
    assert.is(folded({ 'a.js': code }), code)
  }
})

test('names of properties, methods and exports stay', () => {
  const code =
    'const N = 3\nclass A { N = 1; M() { return this.N } }\nconst o = { N: 2 }\nconst p = { N }\nexport { N }'
  assert.is(folded({ 'a.js': code }), code)
})

test('what is no number stays', () => {
  const code = "const S = 'text'\nconst L = [1]\nlet V = 1\nconst M = { a: 1, b: 'c' }\nf(S, L, V, M.a)"
  assert.is(folded({ 'a.js': code }), code)
})

test.run()
