// run: addon
// The addon decides only by the algorithms that it has.
import * as assert from 'uvu/assert'
import { nativeCounting } from '#millrace/algorithms/select.js'
import { checkRule } from '#millrace/core/rule.js'
import { createArena } from '#millrace/memory/arena.js'
import { ALGORITHMS } from '#millrace/memory/layout.js'
import { addonFor, addonForArena, chooseAddon } from '#millrace/native/addon.js'
import { test } from './addon-test.js'

test('an arena has the addon exactly if the addon has the algorithm of its rule', () => {
  assert.ok(addonFor())
  const native = ALGORITHMS.filter((algorithm) => {
    const arena = createArena(checkRule({ limit: 1, window: '1m', algorithm }), 1, 'evict', 0)
    assert.is(arena.algorithm, algorithm)
    assert.is(
      addonForArena(chooseAddon(), arena) !== undefined,
      nativeCounting(arena) !== undefined,
      algorithm,
    )
    return nativeCounting(arena) !== undefined
  })
  const expected = ['sliding-window', 'sliding-counter', 'fixed-window', 'token-bucket', 'leaky-bucket']
  assert.equal(native, expected, 'those of native/algorithm.h')
})

test.run()
