import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { testStore } from '../conformance/config-stores.js'

// Nobody but its own store reaches it, so there is one store of a place.
testStore(test, async () => {
  const store = memoryConfig()
  return { open: () => store, remove: async () => {} }
})

test('policies to begin with', async () => {
  const store = memoryConfig({ 'user:*': { limit: 5, window: '1s' } })
  assert.is(store.findNow(['user:1', 'user:*'])?.key, 'user:*')
  assert.throws(() => memoryConfig({ a: { limit: -1, window: '1s' } }), /limit/)
})

test.run()
