import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { bareMap, fastifyLocalStore, LIMIT, tokenBuckets } from '../../bench/peers.js'

for (const [name, make] of Object.entries({
  'bare Map': bareMap,
  "@fastify/rate-limit's store": () => fastifyLocalStore(2),
  "limiter's token buckets": tokenBuckets,
})) {
  test(`${name} counts each key separately, up to the limit of the benchmark`, () => {
    const decide = make()
    let allowed = 0
    for (let i = 0; i < LIMIT; i++) if (decide('busy')) allowed++
    assert.is(allowed, LIMIT)
    assert.is(decide('busy'), false)
    assert.is(decide('idle'), true)
  })
}

test.run()
