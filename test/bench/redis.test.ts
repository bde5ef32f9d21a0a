// run: alone, long
import * as assert from 'uvu/assert'
import type { Effort } from '../../bench/benchmark.js'
import { REDIS_CASES } from '../../bench/cases/index.js'
import { withRedis } from '../../bench/redis/server.js'
import { encoded, Wire } from '../../bench/redis/wire.js'
import { redisTest as test } from '../redis/skip.js'
import { exposeCollector } from './garbage.js'

exposeCollector()

const TINY: Effort = { quick: true, operations: 4_000, coldOperations: 0 }

for (const [name, load] of Object.entries(REDIS_CASES)) {
  test(`${name}: each contender returns every figure, and each goal has a value`, async () => {
    const { contenders, units, goals } = await load()
    const round: Record<string, Record<string, number>> = {}
    for (const contender of contenders) {
      const figures = await contender.measure(TINY)
      for (const unit of Object.keys(units)) assert.ok(figures[unit]! >= 0, `${contender.name}: ${unit}`)
      round[contender.name] = figures
    }
    for (const { label, value } of goals) assert.ok(Number.isFinite(value(round)), label)
  })
}

test('a wire reads replies of every kind, also in pieces, and raises those that are errors', async () => {
  await withRedis(async ({ port }) => {
    const wire = await Wire.connect(port)
    const long = 'x'.repeat(1_000_000)
    const script = `return {1, 'two', {3, {}}, false, redis.status_reply('OK')}`
    const replies = await wire.pipeline([
      encoded(['EVAL', script, '0']),
      encoded(['ECHO', long]),
      encoded(['PING']),
      encoded(['GET', 'none']),
    ])
    assert.equal(replies, [[1, 'two', [3, []], null, 'OK'], long, 'PONG', null])
    const error = await wire.send('NONSENSE').catch((cause: unknown) => cause)
    assert.match((error as Error).message, 'unknown command')
    wire.close()
  })
})

test.run()
