// run: full
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { QUICK_EFFORT } from '../../bench/benchmark.js'
import { floor } from '../../bench/cases/floor.js'
import { findCompiler } from '../../bench/compiler.js'

test('findCompiler returns undefined without a compiler', () => {
  assert.is(findCompiler({ PATH: '' }), undefined)
  assert.is(findCompiler({ PATH: '', CXX: 'no-such-compiler' }), undefined)
})

test('CXX names the compiler', () => {
  assert.is(findCompiler({ PATH: '', CXX: process.execPath }), process.execPath) // answers to --version
})

test('the floor measures every contender, or says why it cannot', async () => {
  if (floor.unavailable!() !== undefined) return assert.match(floor.unavailable!()!, 'CXX')
  for (const { measure } of floor.contenders) {
    const { ns } = await measure({ ...QUICK_EFFORT, operations: 1_000 })
    assert.ok(ns! > 0)
  }
})

test.run()
