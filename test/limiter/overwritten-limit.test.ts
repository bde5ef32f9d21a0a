// The limit in shared memory is overwritten by code that is not a limiter.
import { createLimiter, type Limiter, manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { HEADER } from '#millrace/memory/layout.js'

const NO_LIMITS = [0, -1, -(2 ** 31), 2 ** 22 - 1, 2 ** 31 - 1]

function made(limit = 3): { limiter: Limiter; overwrite(word: number): void } {
  const limiter = createLimiter({ limit, window: '1h', maxKeys: 100, clock: manualClock() })
  limiter.peek('nobody') // reads the limit
  const words = new Int32Array(limiter.share().buffer)
  return { limiter, overwrite: (word) => void Atomics.store(words, HEADER.CURRENT, word) }
}

for (const word of NO_LIMITS) {
  test(`a limit overwritten by ${word} is ignored: check and checkMany keep the previous one`, () => {
    const { limiter, overwrite } = made()
    overwrite(word)
    const one = Array.from({ length: 20 }, () => limiter.check('one').allowed)
    const many = limiter.checkMany(Array(20).fill('many'), 1, { remaining: true })
    const expected = Array.from({ length: 20 }, (_, i) => i < 3)
    assert.equal(one, expected)
    assert.equal([...many.allowed].map(Boolean), expected)
    assert.equal([...many.remaining!.subarray(0, 4)], [2, 1, 0, 0])
    assert.equal([limiter.peek('one').allowed, limiter.peek('two').allowed], [false, true])
    assert.equal([limiter.rule.limit, limiter.check('one').limit], [3, 3])
    limiter.update('default', { limit: 4 })
    assert.equal([limiter.check('one').allowed, limiter.check('one').allowed], [true, false])
  })
}

test('the threads of a pool keep deciding by the previous limit', async () => {
  const limiter = createLimiter({ limit: 3, window: '1h', maxKeys: 100, engine: 'pool' })
  assert.ok((await limiter.check('key')).allowed)
  const words = new Int32Array(limiter.share().buffer)
  for (const word of NO_LIMITS) {
    Atomics.store(words, HEADER.CURRENT, word)
    const batch = await limiter.checkMany(Array(20).fill(`many ${word}`))
    assert.is(
      batch.allowed.reduce((sum, one) => sum + one, 0),
      3,
      `${word}`,
    )
    const each = await Promise.all(Array.from({ length: 20 }, () => limiter.check(`one ${word}`)))
    assert.is(each.filter(({ allowed }) => allowed).length, 3, `${word}`)
  }
  await limiter.close()
})

test.run()
