// run: full

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRefused, countOf, example, withServers } from './program.js'

const FIFTEEN_MINUTES_AND_A_GRANULE = 15 * 60 + 15

test('nest.mjs limits handlers by the rules of the module or by their own, and skips the health check', () =>
  withServers(example('nest.mjs'), 1, async ([address]) => {
    const several = (count: number, path: string, method = 'GET') =>
      Promise.all(Array.from({ length: count }, () => fetch(address + path, { method })))
    const hellos = await several(15, '/')
    assert.equal([countOf(hellos, 200), countOf(hellos, 429)], [10, 5])
    for (const response of hellos) if (response.status === 429) assertRefused(response, 61)
    const logins = await several(7, '/login', 'POST')
    assert.equal([countOf(logins, 201), countOf(logins, 429)], [5, 2])
    for (const response of logins) {
      assert.is(response.headers.get('RateLimit-Policy'), '"logins";q=5;w=900')
      if (response.status === 429) assertRefused(response, FIFTEEN_MINUTES_AND_A_GRANULE)
    }
    const checks = await several(15, '/health')
    assert.is(countOf(checks, 200), 15)
    assert.is(checks[0]!.headers.get('RateLimit'), null)
  }))

test.run()
