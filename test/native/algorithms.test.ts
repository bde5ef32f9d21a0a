// run: addon
// The addon has every algorithm.
import * as assert from 'uvu/assert'
import { checkRule } from '#millrace/core/rule.js'
import { createArena } from '#millrace/memory/arena.js'
import { ALGORITHMS } from '#millrace/memory/layout.js'
import { addonFor, addonForArena, chooseAddon } from '#millrace/native/addon.js'
import { test } from './addon-test.js'

test('the addon decides by every algorithm', () => {
  assert.ok(addonFor())
  for (const algorithm of ALGORITHMS) {
    const arena = createArena(checkRule({ limit: 1, window: '1m', algorithm }), 1, 'evict', 0)
    assert.is(arena.algorithm, algorithm)
    assert.is(addonForArena(chooseAddon(), arena), addonFor(), algorithm)
  }
})

test.run()
