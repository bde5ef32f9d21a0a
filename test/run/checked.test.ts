// run: typescript
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { root } from '../package/root.js'
import { contentHash, isChecked, recordChecked } from './checked.js'
import { FULL, sizesFor } from './parts.js'

const folder = `${mkdtempSync(join(tmpdir(), 'millrace-checked-'))}/`
test.after(() => rmSync(folder, { recursive: true }))
for (const part of ['native', 'src']) cpSync(join(root, part), join(folder, part), { recursive: true })
mkdirSync(join(folder, '.ci'))
const before = contentHash(folder)

test('the hash is that of the package, and depends on the contents alone', () => {
  assert.match(before, /^[0-9a-f]{64}$/)
  assert.is(contentHash(root), before)
})

for (const file of [
  'native/cell.h',
  'native/test/cell_test.cc',
  'src/memory/words.ts',
  'src/algorithms/window/sliding-window.ts',
  'src/engines/inline/inline.ts',
  'src/native/constants.ts',
]) {
  test(`a change of ${file} changes the hash, and what was checked is not any more`, () => {
    recordChecked(folder, before)
    assert.ok(isChecked(folder, contentHash(folder)))
    const text = readFileSync(join(folder, file), 'utf8')
    writeFileSync(join(folder, file), `${text}\n`)
    assert.not(isChecked(folder, contentHash(folder)))
    writeFileSync(join(folder, file), text)
    assert.ok(isChecked(folder, contentHash(folder)))
  })
}

test('a new file changes the hash, and a file elsewhere does not', () => {
  writeFileSync(join(folder, 'src/http/policy.ts'), '')
  assert.is(contentHash(folder), before)
  writeFileSync(join(folder, 'native/new.h'), '')
  assert.is.not(contentHash(folder), before)
  rmSync(join(folder, 'native/new.h'))
})

test('without a record nothing is checked', () => {
  rmSync(join(folder, '.ci/checked.json'), { force: true })
  assert.not(isChecked(folder, before))
})

test('the sanitizers and parity run in full unless they have passed on these contents, and then a share', () => {
  const all = sizesFor(FULL, false)
  const some = sizesFor(FULL, true)
  assert.equal(all, FULL)
  const changed = some.filter((part, i) => part !== FULL[i])
  assert.equal(
    changed.map(({ name }) => name),
    ['sanitizers', 'parity'],
  )
  for (const { name, args, budgetSeconds } of changed) {
    const whole = FULL.find((part) => part.name === name)!
    assert.is(args[0], whole.args[0])
    assert.is.not(args.join(' '), whole.args.join(' '))
    assert.ok(budgetSeconds < whole.budgetSeconds, name)
  }
})

test('the record of the package is a hash, as the run writes it', () => {
  const path = join(root, '.ci/checked.json')
  if (!existsSync(path)) return
  const { hash } = JSON.parse(readFileSync(path, 'utf8'))
  recordChecked(folder, hash)
  assert.is(readFileSync(join(folder, '.ci/checked.json'), 'utf8'), readFileSync(path, 'utf8'))
  assert.match(hash, /^[0-9a-f]{64}$/)
})

test.run()
