// run: full

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRefused, countOf, example, withServers } from './program.js'

test('http.mjs admits exactly 10 of 15 requests, and sends Retry-After to the others', () =>
  withServers(example('http.mjs'), 1, async ([address]) => {
    const responses = await Promise.all(Array.from({ length: 15 }, () => fetch(address!)))
    assert.is(countOf(responses, 200), 10)
    assert.is(countOf(responses, 429), 5)
    for (const response of responses) if (response.status === 429) assertRefused(response, 61)
  }))

test('http.mjs sends the header fields of the IETF draft, and exits on SIGINT', () =>
  withServers(
    example('http.mjs'),
    1,
    async ([address]) => {
      for (const left of [9, 8]) {
        const { headers } = await fetch(address!)
        assert.is(headers.get('RateLimit-Policy'), '"per-client";q=10;w=60')
        assert.match(headers.get('RateLimit')!, new RegExp(`^"per-client";r=${left};t=6[01]$`))
        assert.is(headers.get('Retry-After'), null)
      }
    },
    'SIGINT',
  ))

test.run()
