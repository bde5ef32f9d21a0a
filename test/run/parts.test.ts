import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { runNode } from '../package/project.js'
import { readText, root } from '../package/root.js'
import { testFiles } from './files.js'
import { FULL, LONG } from './parts.js'

const MOST_SECONDS = 900

for (const [size, parts] of Object.entries({ full: FULL, long: LONG })) {
  test(`every part of the ${size} tests has a unique name and an existing program`, () => {
    const names = parts.map(({ name }) => name)
    assert.is(new Set(names).size, names.length)
    for (const { name, args } of parts) {
      const program = args.find((arg) => /^[\w/-]+\.m?js$/.test(arg))
      assert.ok(program !== undefined && existsSync(join(root, program)), name)
    }
  })
}

test('the budgets of the full tests add up to a quarter of an hour on two processors', () => {
  const sum = (isAlone: boolean) =>
    FULL.filter((part) => (part.isAlone ?? false) === isAlone).reduce(
      (sum, { budgetSeconds }) => sum + budgetSeconds,
      0,
    )
  assert.ok(sum(true) + sum(false) / 2 <= MOST_SECONDS)
})

test('CONTRIBUTING.md says where each part runs, and what it caught last', () => {
  const [, section = ''] =
    /^### What each check caught last\n([\s\S]*?)^## /m.exec(readText('CONTRIBUTING.md')) ?? []
  const rows = section.split('\n').filter((line) => line.startsWith('| `') || line.startsWith('| lint'))
  const first = rows.map((row) => row.split('|')[1]!).join()
  for (const { name } of [...FULL, ...LONG]) assert.ok(first.includes(`\`${name}\``), name)
  for (const row of rows) assert.is(row.split(' | ').length, 3, row)
})

test('the error for an unknown part lists the parts', async () => {
  const { code, out } = await runNode([join(root, 'build/test/parts.js'), 'full', 'nothing'], root)
  assert.is(code, 1)
  assert.match(out, FULL.map(({ name }) => name).join(', '))
  assert.match(out, /\n0 passed, 0 failed, 0 skipped\n$/)
})

test('a test file that has two sizes runs at full size too', () => {
  for (const { name, path, marks } of testFiles(root)) {
    if (!/['"/]size\.js'/.test(readFileSync(path, 'utf8'))) continue
    assert.ok(marks.has('full') || marks.has('also-full'), name)
  }
})

test.run()
