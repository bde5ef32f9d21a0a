// The number of keys in the statistics, compared with the number of LIVE ways.
import { attachLimiter, createLimiter, type Limiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { attachArena } from '#millrace/memory/arena.js'
import { ADM, LIVE, STATE } from '#millrace/memory/layout.js'
import { random } from '../algorithms/random.js'

function placesTaken(limiter: Limiter): number {
  const { words, shape } = attachArena(limiter.share().buffer)
  let taken = 0
  for (let way = 0; way < shape.ways; way++) {
    if ((words[shape.waysAt + way * shape.wayWords + ADM]! & STATE) === LIVE) taken++
  }
  return taken
}

test('each new key raises the number of keys by one, in a table of any size', () => {
  for (const maxKeys of [20, 1_000, 100_000, 1_000_000]) {
    const limiter = createLimiter({ limit: 5, window: '1m', granularity: '10s', maxKeys })
    for (let keys = 0; keys < 20; keys++) {
      assert.is(limiter.stats().keys, keys, `${maxKeys}`)
      limiter.check(`key ${keys}`)
      limiter.check(`key ${keys}`)
    }
  }
})

for (const onFull of ['evict', 'deny', 'allow'] as const) {
  test(`${onFull}: at rest the number of keys is the number of taken ways`, () => {
    const clock = manualClock(1e9)
    const limiter = createLimiter({
      limit: 3,
      window: '1s',
      granularity: '100ms',
      maxKeys: 100,
      onFull,
      clock,
    })
    const attached = attachLimiter(limiter.share(), { clock })
    const next = random(1)
    for (let i = 0; i < 20_000; i++) {
      const key = `key ${Math.floor(next() * 400)}`
      const chance = next()
      const on = next() < 0.5 ? limiter : attached
      if (chance < 0.9) on.check(key)
      else if (chance < 0.93) on.block(key, 500 * next() + 1)
      else if (chance < 0.96) on.penalize(key, 1)
      else if (chance < 0.98) on.clear(key)
      else clock.advance(Math.ceil(200 * next()))
      if (i % 100 === 0) assert.is(limiter.stats().keys, placesTaken(limiter))
    }
    const { keys, evicted } = limiter.stats()
    assert.is(keys, placesTaken(limiter))
    assert.ok(keys > 100 && evicted > 100, `${keys} keys, ${evicted} evicted`)
  })
}

test('a key keeps its way, and is counted, until another key takes the way', () => {
  const clock = manualClock(1e9)
  const limiter = createLimiter({ limit: 3, window: '1s', maxKeys: 20, clock })
  limiter.check('key')
  clock.advance(3_600_000)
  assert.is(limiter.stats().keys, 1)
  for (let i = 0; i < 40; i++) limiter.check(`other ${i}`)
  const { keys, evicted, evictedLive } = limiter.stats()
  assert.equal([keys, evicted, evictedLive], [32, 9, 8])
})

test.run()
