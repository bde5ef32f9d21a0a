// run: full
// The recipes of docs/how-to/login.md.
import { createServer } from 'node:http'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { listen, shut } from '../http/serve.js'
import { runRecipe } from './recipe.js'

const PAGE = 'docs/how-to/login.md'

test('the middleware counts failed logins only, by account and by address', async () => {
  const { app, failures } = await runRecipe('In a framework', ['app', 'failures'], {}, PAGE)
  const server = createServer(app)
  const url = await listen(server)
  const login = (account: string, password: string) =>
    fetch(`${url}/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ account, password }),
    })
  for (let i = 0; i < 9; i++) assert.is((await login('alice', 'alice!')).status, 204)
  for (let i = 0; i < 5; i++) assert.is((await login(i % 2 ? 'alice' : 'Alice', 'guess')).status, 401)
  const refused = await login('alice', 'alice!')
  assert.is(refused.status, 429)
  assert.match(refused.headers.get('ratelimit')!, /^"account";r=0;t=9\d\d$/)
  assert.match(refused.headers.get('retry-after')!, /^9\d\d$/)
  assert.equal(((await refused.json()) as Record<string, unknown>)['violated-policies'], ['account'])
  assert.is((await login('bob', 'bob!')).status, 204)
  for (let i = 0; i < 15; i++) assert.is((await login(`user ${i}`, 'guess')).status, 401)
  const byAddress = await login('bob', 'bob!')
  assert.is(byAddress.status, 429)
  assert.match(byAddress.headers.get('ratelimit')!, /^"address";r=0;/)
  await shut(server)
  await failures.close()
})

test('the plugin of Fastify counts failed logins by account, and by the address that a trusted proxy names', async () => {
  const { app } = await runRecipe('In Fastify', ['app'], {}, PAGE)
  const login = async (account: string, password: string, address: string) => {
    const headers = { 'x-forwarded-for': address }
    const answer = await app.inject({ method: 'POST', url: '/login', headers, body: { account, password } })
    return [answer.statusCode, answer.headers.ratelimit?.split(';')[0]]
  }
  for (let i = 0; i < 9; i++) assert.is((await login('alice', 'alice!', '203.0.113.1'))[0], 204)
  for (let i = 0; i < 5; i++)
    assert.is((await login(i % 2 ? 'alice' : 'Alice', 'guess', '203.0.113.1'))[0], 401)
  assert.equal(await login('alice', 'alice!', '203.0.113.2'), [429, '"account"'])
  for (let i = 0; i < 15; i++) assert.is((await login(`user ${i}`, 'guess', '203.0.113.1'))[0], 401)
  assert.equal(await login('bob', 'bob!', '203.0.113.1'), [429, '"address"'])
  assert.is((await login('bob', 'bob!', '203.0.113.2'))[0], 204)
  await app.close()
})

test('the group checks 5 of 12 simultaneous guesses, and its headers are written', async () => {
  const { login } = await runRecipe('By your own code', ['login'], {}, PAGE)
  const wrong = async () => false
  const all = Array.from({ length: 12 }, () => login(new Headers(), 'alice', '192.0.2.1', wrong))
  const statuses = await Promise.all(all)
  assert.equal(
    [401, 429].map((status) => statuses.filter((each) => each === status).length),
    [5, 7],
  )
  const headers = new Headers()
  assert.is(await login(headers, 'alice', '192.0.2.1', async () => true), 429)
  assert.match(headers.get('RateLimit')!, /^"account";r=0;t=9\d\d$/)
  for (let i = 0; i < 9; i++) assert.is(await login(new Headers(), 'bob', '192.0.2.1', async () => true), 204)
})

test.run()
