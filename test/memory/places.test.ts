// The distribution of new keys in a table at its design load.
import { createLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { attachArena } from '#millrace/memory/arena.js'
import { Hasher } from '#millrace/memory/hash.js'
import { HEADER, WAYS_PER_SET } from '#millrace/memory/layout.js'
import { Table } from '#millrace/memory/table.js'

const KEYS = 12_800

test('at 80 % load nearly 4 of 5 keys are in their first set, 3 of 5 at home, and every key has a way', () => {
  const limiter = createLimiter({ limit: 1, window: '1m', granularity: '10s', maxKeys: KEYS, onFull: 'deny' })
  const { words, shape } = attachArena(limiter.share().buffer)
  const table = new Table(words, shape)
  const hasher = new Hasher(words[HEADER.SEED_0]!, words[HEADER.SEED_1]!)
  let first = 0
  let home = 0
  for (let i = 0; i < KEYS; i++) {
    const key = `key ${i}`
    assert.ok(limiter.check(key).allowed)
    hasher.hash(key)
    const { lo, hi } = hasher
    const set = table.firstSet(lo)
    const way = table.findLive(lo, hi)
    const isFirst = way - (way % WAYS_PER_SET) === set
    assert.ok(isFirst || way - (way % WAYS_PER_SET) === table.secondSet(set, hi))
    if (isFirst) first++
    if (way % WAYS_PER_SET === (lo & (WAYS_PER_SET - 1))) home++
  }
  // The seeds are random. The bounds are five deviations below the means of 0.795 and 0.626.
  assert.ok(first / KEYS > 0.775, `${first / KEYS} in their first set`)
  assert.ok(home / KEYS > 0.6, `${home / KEYS} at home`)
})

test.run()
