// run: modules
import { createLimiter, MillraceError, type PoolOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ALL_CASES } from '../../bench/cases/index.js'
import { markdownFiles } from './markdown.js'
import { readText } from './root.js'

const text = readText('docs/explanation/engines.md')

test('docs/explanation/engines.md has a row for each option of the pool, and for none that it does not take', () => {
  const [, options] = /^## Options$([\s\S]*?)^## /m.exec(text) ?? []
  const documented = [...options!.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name!)
  assert.throws(
    () => createLimiter({ limit: 1, window: '1s', engine: 'pool', pool: { none: 1 } as PoolOptions }),
    (error: unknown) =>
      error instanceof MillraceError && error.message.includes(`only ${documented.join(', ')}`),
  )
})

test('every case of the benchmarks that a page names exists', () => {
  const text = markdownFiles().map(readText).join('\n')
  const named = new Set([...text.matchAll(/--case\s+([\w-]+)/g)].map(([, name]) => name!))
  assert.ok(named.size >= 15, `only ${named.size} are named`)
  const cases = Object.keys(ALL_CASES)
  for (const name of named) assert.ok(cases.includes(name), name)
})

test('every anchor of docs/explanation/engines.md in docs/reference/errors.md is a section there', () => {
  const errors = readText('docs/reference/errors.md').toLowerCase()
  const anchors = [...text.matchAll(/errors\.md#(\w+)/g)].map(([, anchor]) => anchor!)
  assert.ok(anchors.length >= 4)
  for (const anchor of anchors) assert.match(errors, new RegExp(`^## ${anchor}$`, 'm'))
})

test.run()
