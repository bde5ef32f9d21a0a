import { readFileSync } from 'node:fs'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as words from '#millrace/memory/words.js'
import { withDirectWords } from '../../bench/direct-words.js'

const NAMES = Object.keys(words)
const IMPORT = `import { ${NAMES.join(', ')} } from '../memory/words.js';\n`

function rewritten(code: string): string {
  return withDirectWords(IMPORT + code).slice(IMPORT.length)
}

test('every function of words.js has a rewrite', () => {
  for (const name of NAMES) {
    assert.not.match(rewritten(`${name}(w, i, a, b);`), new RegExp(`^${name}\\(`))
  }
})

test('read and write become plain accesses, the others Atomics calls', () => {
  assert.is(rewritten('x = load(w, i);'), 'x = Atomics.load(w, i);')
  assert.is(rewritten('store(w, i, v);'), 'Atomics.store(w, i, v);')
  assert.is(rewritten('add(w, i, 1);'), 'Atomics.add(w, i, 1);')
  assert.is(
    rewritten('if (compareExchange(w, i, a, b) === a)'),
    'if (Atomics.compareExchange(w, i, a, b) === a)',
  )
  assert.is(rewritten('x = read(this.#words, i + 1);'), 'x = this.#words[i + 1];')
  assert.is(rewritten('write(w, i, a ? b : c);'), '(w[i] = a ? b : c);')
})

test('nested calls are replaced, and commas in parentheses do not separate arguments', () => {
  assert.is(
    rewritten('compareExchange(w, at(base, TICK), read(w, i), f([1, 2], { a: 1, b: 2 }))'),
    'Atomics.compareExchange(w, at(base, TICK), w[i], f([1, 2], { a: 1, b: 2 }))',
  )
})

test('an expression as the words argument gets parentheses', () => {
  assert.is(rewritten('read(a ?? b, i)'), '(a ?? b)[i]')
})

test('strings, comments, methods and longer names are unchanged', () => {
  const code = [
    "const s = 'load(w, i)';",
    '// load(w, i)',
    '/* read(w,',
    ' i) */',
    'const t = `it\\`s read(w, i)`;',
    'this.load(w, i); file.read(w, i); this.#add(w, i);',
    'reload(w, i); load2(w, i); const read = 1;',
    'class C { load(w, i) { } }',
  ].join('\n')
  assert.is(rewritten(code), code)
})

test('commas and parentheses in strings and comments do not separate arguments', () => {
  assert.is(rewritten("store(w, i, f(',)')) /* ) */"), "Atomics.store(w, i, f(',)')) /* ) */")
})

test('only functions imported from words.js are replaced', () => {
  const code = "import { load } from './memory/words.js';\nload(w, i); read(w, i);"
  assert.is(
    withDirectWords(code),
    "import { load } from './memory/words.js';\nAtomics.load(w, i); read(w, i);",
  )
  const other = "import { load } from './other.js';\nload(w, i);"
  assert.is(withDirectWords(other), other)
})

test('a function of words.js without a rewrite is an error', () => {
  assert.throws(() => withDirectWords("import { xor } from './words.js';"), /no rewrite for 'xor'/)
})

test('no call of words.js is left in the hot path', () => {
  for (const file of ['window/sliding-window', 'window/summed-cells', 'word/cell-time', 'word/word-cells']) {
    const code = readFileSync(new URL(`../../lib/algorithms/${file}.js`, import.meta.url), 'utf8')
    const direct = withDirectWords(code)
    assert.match(direct, /Atomics\.compareExchange\(/)
    assert.not.match(
      direct.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, ''),
      /(?<![.#\w])(load|compareExchange|read)\(/,
    )
  }
})

test.run()
