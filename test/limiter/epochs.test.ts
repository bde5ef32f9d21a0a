// Epochs have eight bits. After as many new epochs as there are values a cell has the old one again. A note
// of the old epoch must not hold again then.
import type { Limiter, LimiterOptions } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { limiterWith, resolved } from './support.js'

const EPOCHS = 256
/** Numbers of new epochs. The epoch comes round at the second and the last; a refusal adds one itself. */
const TIMES = [EPOCHS - 1, EPOCHS, EPOCHS + 1, 2 * EPOCHS]
const SHAPES: Readonly<Record<string, Partial<LimiterOptions>>> = {
  'strict edge': {},
  'smooth edge': { edge: 'smooth' },
  'block sums': { window: 300_000, rangeSum: 'blocks' },
  'a Fenwick tree': { window: 300_000, rangeSum: 'fenwick' },
}

/** Ways to give back one unit of a full key, `times` times, without a decision in between. */
const GIVE_BACK: Readonly<Record<string, (limiter: Limiter, times: number) => () => void>> = {
  'refunds of a decision': (limiter, times) => {
    const decisions = Array.from({ length: times }, () => limiter.check('key'))
    return () => {
      for (const decision of decisions) assert.is(limiter.refund(decision), 1)
    }
  },
  'refunds by key': (limiter, times) => {
    limiter.check('key', times)
    return () => {
      for (let i = 0; i < times; i++) assert.is(limiter.refund('key', 1), 1)
    }
  },
}

for (const [shape, options] of Object.entries(SHAPES)) {
  for (const [what, charge] of Object.entries(GIVE_BACK)) {
    test(`${shape}: a full key has room again after any number of ${what} in one granule`, async () => {
      for (const times of TIMES) {
        const { limiter } = limiterWith({ limit: times, ...options })
        const giveBack = charge(limiter, times)
        assert.not(limiter.check('key').allowed, 'full, and noted as full')
        giveBack()
        assert.is(limiter.usage('key'), 0)
        assert.ok(limiter.peek('key').allowed)
        assert.ok((await resolved(limiter.wait('key'))).allowed, `waits after ${times}`)
        assert.ok(limiter.check('key', times - 1).allowed, `${times} times`)
        assert.not(limiter.check('key').allowed)
      }
    })
  }

  test(`${shape}: a key whose blocks have ended has room, after any number of blocks in one granule`, () => {
    for (const times of TIMES) {
      const { clock, limiter } = limiterWith(options)
      limiter.check('key', 3)
      assert.not(limiter.check('key', 3).allowed, 'noted: no room for three')
      for (let i = 0; i < times; i++) limiter.block('key', 1)
      clock.advance(100)
      assert.ok(limiter.peek('key').allowed)
      assert.ok(limiter.check('key', 2).allowed, `${times} blocks`)
      assert.not(limiter.check('key').allowed)
    }
  })
}

test('a full key is decided by its counts after any number of charges and give-backs by others', () => {
  for (const times of TIMES) {
    const { limiter } = limiterWith({ limit: 5 })
    limiter.check('key', 5)
    assert.not(limiter.check('key').allowed)
    for (let i = 0; i < times; i++) limiter.penalize('key', 1)
    assert.is(limiter.refund('key', times), times)
    assert.not(limiter.check('key').allowed, `${times} penalties`)
    assert.is(limiter.refund('key', 1), 1)
    assert.ok(limiter.check('key').allowed, `${times} penalties`)
  }
})

test.run()
