// run: full
import { setFlagsFromString } from 'node:v8'
import { createLimiter } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { timeThreads } from '../../bench/workers.js'

setFlagsFromString('--expose-gc') // threads started from now on can collect garbage before the timed loop

const KEYS = 100
const OPERATIONS = 5_000
const ENOUGH = 1_000_000
const rule = { window: '1h', maxKeys: 2 * KEYS } as const

test('threads that share a limiter decide on separate keys', async () => {
  const limiter = createLimiter({ ...rule, limit: ENOUGH })
  assert.ok((await timeThreads([limiter, limiter], KEYS, OPERATIONS)) > 0)
  const { keys } = limiter.stats()
  assert.ok(Math.abs(keys - 2 * KEYS) <= 2 * KEYS * 0.02, `${keys} keys`) // the count is an estimate
})

test('a refusal fails the run', async () => {
  const limiter = createLimiter({ ...rule, limit: 1 })
  const end = await timeThreads([limiter], KEYS, OPERATIONS).catch((error: unknown) => error)
  assert.match((end as Error).message, 'only 0 of a thread')
})

test.run()
