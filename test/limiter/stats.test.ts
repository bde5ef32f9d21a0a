import { attachLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { limiterWith } from './support.js'

test('every decision is counted once, with any number of calls of stats', () => {
  const { limiter } = limiterWith({ limit: 300 })
  for (let i = 0; i < 700; i++) limiter.check('key')
  for (let asked = 0; asked < 3; asked++) {
    const { allowed, denied } = limiter.stats()
    assert.equal([allowed, denied], [300, 400])
  }
  limiter.check('key')
  limiter.check('other')
  const { allowed, denied } = limiter.stats()
  assert.equal([allowed, denied], [301, 401])
})

test('the decisions of an attached limiter are counted once when it closes', async () => {
  const { limiter } = limiterWith({ limit: 10 })
  const attached = attachLimiter(limiter.share())
  for (let i = 0; i < 15; i++) attached.check('key')
  await attached.close()
  await attached.close()
  const { allowed, denied } = limiter.stats()
  assert.equal([allowed, denied], [10, 5])
})

test.run()
