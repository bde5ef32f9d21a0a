import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readText, root } from './root.js'

const text = readText('docs/explanation/guarantees.md')

test('every test that docs/explanation/guarantees.md names exists', () => {
  const named = new Set(text.match(/\btest\/[\w/-]+(?:\.[\w-]+)*\.(?:ts|mjs)/g))
  assert.ok(named.size > 15)
  for (const file of named) assert.ok(existsSync(join(root, file)), file)
})

test('every guarantee names a test that holds it', () => {
  const guarantees = text.split(/^## /m).filter((section) => /^\d/.test(section))
  assert.is(guarantees.length, 12)
  for (const guarantee of guarantees) assert.match(guarantee, /test\/[\w/-]+\.test\.ts/)
})

test.run()
