// run: full
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRefused, countOf, example, withServers } from './program.js'

const at = (name: string, use: (url: string) => Promise<void>) =>
  withServers(example(name), 1, ([url]) => use(url!))

const times = <T>(n: number, send: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: n }, send))

for (const name of ['express.mjs', 'fastify.mjs', 'koa.mjs', 'hono.mjs']) {
  test(`${name} admits exactly 10 of 15 requests, and says what is left`, () =>
    at(name, async (url) => {
      assert.is(await (await fetch(url)).text(), 'hello, 9 requests are left\n')
      const responses = await times(14, () => fetch(url))
      assert.is(countOf(responses, 200), 9)
      for (const response of responses) {
        assert.match(response.headers.get('RateLimit')!, /^"default";r=\d;t=6[01]$/)
        assert.is(response.headers.get('RateLimit-Policy'), '"default";q=10;w=60')
        if (response.status !== 200) assertRefused(response, 61)
      }
    }))
}

test('fastify.mjs has a limit of its own for logins', () =>
  at('fastify.mjs', async (url) => {
    const responses = await times(4, () => fetch(`${url}/login`, { method: 'POST' }))
    assert.equal([countOf(responses, 200), countOf(responses, 429)], [3, 1])
    assert.is((await fetch(url)).status, 200)
  }))

test('plans.mjs gives each customer the limit of their plan', () =>
  at('plans.mjs', async (url) => {
    const admitted = async (key: string) => {
      const responses = await times(60, () => fetch(url, { headers: { 'x-api-key': key } }))
      return countOf(responses, 200)
    }
    assert.is(await admitted('free-1'), 5)
    assert.is(await admitted('pro-1'), 50)
    assert.is(await admitted('invented'), 5)
    assert.is(await admitted('invented too'), 0) // it has the address of the other
  }))

test('routes.mjs has rules for routes', () =>
  at('routes.mjs', async (url) => {
    const logins = await times(6, () => fetch(`${url}/login`, { method: 'POST' }))
    assert.equal([countOf(logins, 200), countOf(logins, 429)], [5, 1])
    const searches = await times(5, () => fetch(`${url}/search?q=mill`))
    assert.equal([countOf(searches, 200), countOf(searches, 429)], [3, 2])
    assert.match(searches[0]!.headers.get('RateLimit')!, /^"burst";r=\d;t=\d, "searches";r=\d+;t=1[01]$/)
    const checks = await times(5, () => fetch(`${url}/health`))
    assert.is(countOf(checks, 200), 5)
    assert.is(checks[0]!.headers.get('RateLimit'), null)
  }))

test('uploads.mjs charges the bytes that were sent', () =>
  at('uploads.mjs', async (url) => {
    const upload = (bytes: number) => fetch(url, { method: 'POST', body: new Uint8Array(bytes) })
    const statuses: number[] = []
    for (let i = 0; i < 12; i++) statuses.push((await upload(900_000)).status)
    assert.equal(statuses, [...Array(11).fill(200), 429]) // 11 x 900,000 bytes are 9.9 MB
    assert.is((await upload(50_000)).status, 200)
    assert.is((await upload(1_000_001)).status, 413)
  }))

test('tokens.mjs gives back the tokens that an answer did not take', () =>
  at('tokens.mjs', async (url) => {
    const ask = (maxTokens: number, prompt = 'a mill') =>
      fetch(url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'x-user': 'alice' },
        body: JSON.stringify({ prompt, maxTokens }),
      })
    for (let i = 0; i < 3; i++) {
      const response = await ask(900)
      assert.is(response.status, 200, await response.text())
    }
    assert.is((await ask(990)).status, 429) // 18 are used
    assert.is((await ask(982)).status, 200)
    assert.is((await ask(1_001)).status, 429)
    assert.is((await ask(0)).status, 400)
  }))

test.run()
