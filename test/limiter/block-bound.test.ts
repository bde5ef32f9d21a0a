// Blocks never fill the table: if more than half of a key's ways are blocked, the block that ends first is
// evicted. `maxKeys: 20` makes two sets of 16 ways, and every key may be in any of the 32.
import type { Limiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { limiterWith } from './support.js'

const PLACES = 32
const HALF = PLACES / 2
const LIMIT = 10
const MODES = ['evict', 'deny', 'allow'] as const

const names = (what: string, count: number) => Array.from({ length: count }, (_, i) => `${what} ${i}`)
const isBlocked = (limiter: Limiter, key: string) => !limiter.peek(key, 0).allowed
const blockedOf = (limiter: Limiter, keys: string[]) => keys.filter((key) => isBlocked(limiter, key))

test('5,000 blocks in a table for 1,000 keys: new keys are admitted, and half of the ways stay blocked', () => {
  const { limiter } = limiterWith({ maxKeys: 1_000 })
  const places = 1_264
  const ips = names('ip', 5_000)
  for (const ip of ips) assert.ok(limiter.block(ip, '1d'))
  const blocked = blockedOf(limiter, ips)
  // At most half of each key's own 32 ways are blocked. Keys of other pairs of sets add less than a
  // hundredth.
  assert.ok(Math.abs(blocked.length - places / 2) < places / 50, `${blocked.length} blocked`)
  assert.is(limiter.stats().blocksEvicted, ips.length - blocked.length)
  for (const honest of names('honest', 300)) assert.ok(limiter.check(honest).allowed, honest)
  assert.is(limiter.stats().noRoom, 0)
})

for (const onFull of ['deny', 'allow'] as const) {
  test(`${onFull}: blocked keys without counts leave room for new keys`, () => {
    const { clock, limiter } = limiterWith({ maxKeys: 1_000, onFull })
    for (const ip of names('ip', 5_000)) limiter.block(ip, '1d')
    clock.advance(62_000)
    for (const honest of names('honest', 300)) {
      assert.ok(limiter.check(honest).allowed, honest)
      assert.is(limiter.usage(honest), 1, `${honest} is counted`)
    }
  })
}

for (const onFull of MODES) {
  test(`${onFull}: half of the ways stay blocked, each for its time`, () => {
    const { clock, limiter } = limiterWith({ onFull })
    const keys = names('key', HALF)
    for (const [i, key] of keys.entries()) assert.ok(limiter.block(key, 10_000 + 1_000 * i))
    assert.is(limiter.stats().blocksEvicted, 0)
    for (let i = 0; i < HALF; i++) {
      clock.advance(i === 0 ? 9_999 : 999)
      assert.is(blockedOf(limiter, keys).length, HALF - i)
      clock.advance(1)
      assert.is(blockedOf(limiter, keys).length, HALF - i - 1)
    }
  })

  test(`${onFull}: beyond half, the block that ends first is evicted, never the new one`, () => {
    const { clock, limiter } = limiterWith({ onFull })
    const keys = names('key', HALF)
    for (const [i, key] of keys.entries()) limiter.block(key, 100_000 + 1_000 * ((i * 7) % HALF))
    for (let i = 0; i < HALF; i++) {
      assert.ok(limiter.block(`new ${i}`, 1_000_000 - i))
      const gone = keys.find((_, k) => (k * 7) % HALF === i)!
      assert.not(isBlocked(limiter, gone), gone)
      assert.is(blockedOf(limiter, keys).length, HALF - i - 1)
      assert.is(limiter.stats().blocksEvicted, i + 1)
    }
    clock.advance(1_000) // if counts are kept, a way without counts can be claimed a granule later
    assert.ok(limiter.block('short', 1_000))
    assert.ok(isBlocked(limiter, 'short'))
    assert.is(limiter.stats().blocksEvicted, HALF + 1)
  })

  test(`${onFull}: blocks for ever evict one another, too`, () => {
    const { clock, limiter } = limiterWith({ onFull })
    const keys = names('key', 3 * PLACES)
    for (const key of keys) {
      clock.advance(1_000) // a way without counts can be claimed a granule later
      assert.ok(limiter.block(key, Number.POSITIVE_INFINITY), key)
      assert.ok(isBlocked(limiter, key))
    }
    assert.is(blockedOf(limiter, keys).length, HALF)
    clock.advance(1_000)
    assert.is(limiter.check('honest').remaining, 4)
  })

  test(`${onFull}: a key whose block is evicted by another block keeps its counts, so it has no fresh quota`, () => {
    const { limiter } = limiterWith({ onFull, limit: LIMIT })
    limiter.check('greedy', LIMIT - 1)
    limiter.block('greedy', '1m')
    for (const key of names('key', HALF)) limiter.block(key, '1h')
    assert.not(isBlocked(limiter, 'greedy'))
    assert.is(limiter.usage('greedy'), LIMIT - 1)
    assert.is(limiter.check('greedy').remaining, 0)
    assert.not(limiter.check('greedy').allowed)
  })

  test(`${onFull}: a block that is changed or renewed counts once`, () => {
    const { limiter } = limiterWith({ onFull })
    const keys = names('key', HALF)
    for (const ms of [60_000, 120_000, 30_000]) for (const key of keys) limiter.block(key, ms)
    assert.is(limiter.stats().blocksEvicted, 0)
    limiter.unblock(keys[0]!)
    limiter.block('new', '1h')
    assert.is(limiter.stats().blocksEvicted, 0)
    assert.is(blockedOf(limiter, keys).length, HALF - 1)
  })
}

test('evict: the block of a new key displaces a blocked key, not one that counts', () => {
  const { limiter } = limiterWith({ limit: LIMIT })
  const honest = names('honest', HALF)
  const blocked = names('blocked', HALF)
  for (const key of honest) limiter.check(key)
  for (const [i, key] of blocked.entries()) limiter.block(key, 100_000 + i)
  for (const key of names('new', 100)) assert.ok(limiter.block(key, '1h'))
  for (const key of honest) assert.is(limiter.usage(key), 1)
  assert.equal([limiter.stats().keys, limiter.stats().blocksEvicted], [PLACES, 100])
})

test('evict: a key that takes a blocked way inherits its counts, but not the block', () => {
  const { limiter } = limiterWith({ limit: LIMIT })
  for (const key of names('honest', HALF)) limiter.check(key, 2)
  for (const key of names('blocked', HALF)) {
    limiter.check(key, 7)
    limiter.block(key, '1d')
  }
  limiter.block('new', '2d')
  assert.is(limiter.usage('new'), 7)
  limiter.unblock('new')
  assert.is(limiter.check('new').remaining, LIMIT - 7 - 1)
})

test('deny: the block of a new key is refused until a way has no counts', () => {
  const { clock, limiter } = limiterWith({ onFull: 'deny' })
  for (const key of names('honest', HALF)) limiter.check(key)
  for (const key of names('blocked', HALF)) {
    limiter.check(key)
    limiter.block(key, '1d')
  }
  assert.is(limiter.block('new', '1h'), false)
  clock.advance(62_000)
  for (const key of names('honest', HALF)) limiter.check(key)
  assert.is(limiter.block('new', '1h'), true)
  assert.is(limiter.stats().blocksEvicted, 1)
})

// In a table of more than two sets, keys of other pairs of sets may block more than half of a key's ways.
for (const onFull of MODES) {
  test(`${onFull}: in a table full of blocks, peek gives the result and the retryAfterMs of check`, () => {
    const { clock, limiter } = limiterWith({ maxKeys: 200, onFull, limit: 1 })
    const blocked = names('blocked', 2_000)
    for (const key of blocked) {
      limiter.check(key)
      limiter.block(key, '1d')
      if (Number(key.slice(8)) % 40 === 0) clock.advance(1_000)
    }
    let later = 0
    for (const key of names('new', 200)) {
      const peeked = limiter.peek(key).toJSON()
      const before = limiter.stats()
      const checked = limiter.check(key).toJSON()
      assert.equal([checked.allowed, checked.retryAfterMs], [peeked.allowed, peeked.retryAfterMs])
      if (peeked.allowed) continue
      if (onFull === 'evict') assert.is(limiter.stats().noRoom, before.noRoom)
      later++
      const at = clock.now()
      clock.set(at + peeked.retryAfterMs - 1)
      assert.not(limiter.peek(key).allowed, `${key} before its time`)
      clock.advance(1)
      assert.ok(limiter.peek(key).allowed, `${key} at its time`)
      clock.set(at)
    }
    if (onFull !== 'allow') assert.ok(later > 20, `${later} were refused with a retryAfterMs`)
  })
}

test.run()
