// run: typescript
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ALGORITHMS as NAMES } from '#millrace/memory/layout.js'
import { ALGORITHMS } from './algorithms.js'

test('the suite tries every algorithm that a rule may name', () => {
  const tried = new Set(ALGORITHMS.map(({ options }) => options.algorithm))
  assert.equal([...tried].sort(), [...NAMES].sort())
})

test.run()
