// run: typescript
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { CONSTANTS, constantsHash } from '#millrace/native/constants.js'
import { readText, root } from '../package/root.js'

type Texts = Record<'constantsHeader' | 'constantsHashModule', () => string>
const { constantsHeader, constantsHashModule }: Texts = await import(
  new URL('../../../scripts/native-constants.mjs', import.meta.url).href
)

test('native/constants.h is what `npm run generate` writes', () => {
  assert.is(readText('native/constants.h'), constantsHeader())
})

test('the hash that an addon must have is what `npm run generate` writes', () => {
  assert.is(readText('src/native/constants-hash.ts'), constantsHashModule())
})

test('every constant is a number that its C++ type can hold', () => {
  const all = Object.entries(CONSTANTS).flatMap(([type, constants]) =>
    Object.entries(constants).map(([name, value]) => ({ type, name, value })),
  )
  assert.ok(all.length > 88, `only ${all.length} constants`)
  assert.is(new Set(all.map(({ name }) => name)).size, all.length, 'a name is used twice')
  for (const { type, name, value } of all) {
    assert.ok(Number.isFinite(value), name)
    if (type === 'Word') assert.ok(value === value >> 0 || value === value >>> 0, name)
    if (type === 'int64_t') assert.ok(Number.isSafeInteger(value), name)
  }
})

test('the hash has 16 hexadecimal digits', () => {
  assert.match(constantsHash(), /^[0-9a-f]{16}$/)
})

const handWritten = readdirSync(join(root, 'native'))
  .filter((file) => /\.(h|cc)$/.test(file) && file !== 'constants.h')
  .map((file) => readText(`native/${file}`).replace(/\/\/.*|\/\*[\s\S]*?\*\//g, ''))
  .join('\n')
const names = Object.values(CONSTANTS).flatMap((constants) => Object.keys(constants))

test('no other header defines a constant of that name', () => {
  const defined = [...handWritten.matchAll(/\bconstexpr [\w:]+ (\w+) ?=|#define (\w+)/g)].map(
    ([, a, b]) => a ?? b,
  )
  assert.ok(defined.length > 5, `only ${defined.length} constants were found in C++`)
  assert.equal(
    defined.filter((name) => names.includes(name!)),
    [],
  )
})

test('the addon uses every constant but the version, which makes its hash change', () => {
  const used = new Set(handWritten.match(/\b[A-Z][A-Z0-9_]+\b/g))
  assert.equal(
    names.filter((name) => !used.has(name)),
    ['LAYOUT_VERSION'],
  )
})

test.run()
