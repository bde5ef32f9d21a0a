// run: typescript, full, first
import * as assert from 'uvu/assert'
import { redisTest as test } from '../redis/skip.js'
import { sized } from '../size.js'
import { runExpiry } from './redis/expiry.js'

const KEYS = sized({ quick: 20_000, full: 300_000 })

test('keys that are no longer used expire two granules after the window at the latest', async () => {
  const { longestTtlMs, windowMs, granuleMs, left } = await runExpiry(KEYS)
  assert.ok(longestTtlMs > 0 && longestTtlMs <= windowMs + 2 * granuleMs + 1, `${longestTtlMs}`)
  assert.is(left, 0)
})

test.run()
