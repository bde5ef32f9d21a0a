// run: full

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRefused, countOf, example, withServers } from './program.js'

test('worker-threads.mjs admits exactly 10 requests over its four threads', () =>
  withServers(example('worker-threads.mjs'), 4, async (addresses) => {
    assert.is(new Set(addresses).size, 4)
    const targets = Array.from({ length: 24 }, (_, i) => addresses[i % 4]!)
    const responses = await Promise.all(targets.map((address) => fetch(address)))
    assert.is(countOf(responses, 200), 10)
    assert.is(countOf(responses, 429), 14)
    for (const response of responses) if (response.status === 429) assertRefused(response, 61)
  }))

test('worker-threads.mjs counts admissions of one thread in the next', () =>
  withServers(
    example('worker-threads.mjs'),
    4,
    async (addresses) => {
      const left: unknown[] = []
      for (const address of addresses) {
        left.push(/thread \d+, (\d+) left/.exec(await (await fetch(address)).text())?.[1])
      }
      assert.equal(left, ['9', '8', '7', '6'])
    },
    'SIGINT',
  ))

test.run()
