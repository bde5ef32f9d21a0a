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

test('own counts add up to the shared ones, which each limiter on the memory has', async () => {
  const { limiter } = limiterWith({ limit: 300 })
  const attached = attachLimiter(limiter.share())
  for (let i = 0; i < 400; i++) (i % 4 === 0 ? attached : limiter).check('key')
  const [one, other] = [attached.stats(), limiter.stats()]
  for (const name of ['admitted', 'refused', 'shadowRefused'] as const)
    assert.is(one.own[name] + other.own[name], other.shared![name])
  assert.equal(
    [one.own.admitted + one.own.refused, other.shared],
    [100, { admitted: 300, refused: 100, shadowRefused: 0 }],
  )
  await attached.close()
})

test('the table says how full it is', () => {
  const { limiter } = limiterWith({ maxKeys: 1_000 })
  for (let i = 0; i < 500; i++) limiter.check(`key ${i}`)
  const { keys, places } = limiter.stats()
  assert.is(keys, 500)
  assert.ok(places >= 1_250 && places < 1_300, `${places}`)
})

test('a refusal of a blocked key is counted as one, by each way of deciding', () => {
  for (const options of [
    {},
    { countRefused: true },
    { algorithm: 'token-bucket' },
    { algorithm: 'fixed-window' },
  ] as const) {
    const { limiter } = limiterWith(options as object)
    limiter.check('key')
    limiter.block('key', '1h')
    limiter.check('key')
    limiter.check(limiter.handle('key'))
    limiter.check('key', 1, { limit: 4 })
    limiter.check('key', 0)
    limiter.checkMany(['key', 'other'])
    limiter.checkMany(Array.from({ length: 200 }, () => 'key'))
    limiter.peek('key')
    const { refused, blocked, admitted } = limiter.stats().own
    assert.equal([refused, blocked, admitted], [205, 205, 2], JSON.stringify(options))
  }
})

test.run()
