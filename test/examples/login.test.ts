// run: full
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { assertRefused, countOf, example, withServers } from './program.js'

const FIFTEEN_MINUTES_AND_A_GRANULE = 15 * 60 + 15
const RIGHT = 'open sesame'

const trying = (use: (log: typeof login) => Promise<void>) =>
  withServers(example('login.mjs'), 1, ([address]) => {
    at = address!
    return use(login)
  })
let at = ''

function login(account: string, password: string, cookie = ''): Promise<Response> {
  return fetch(at, { method: 'POST', headers: { cookie }, body: JSON.stringify({ account, password }) })
}

const cookieOf = (response: Response) => response.headers.get('Set-Cookie')!.split(';')[0]!

test('login.mjs never counts a right password', () =>
  trying(async (login) => {
    for (let i = 0; i < 8; i++) assert.is((await login('alice', RIGHT)).status, 200)
    for (let i = 0; i < 5; i++) assert.is((await login('Alice', 'wrong')).status, 401)
    assertRefused(await login('alice', RIGHT), FIFTEEN_MINUTES_AND_A_GRANULE)
  }))

test('login.mjs checks exactly 5 of 12 simultaneous guesses', () =>
  trying(async (login) => {
    const responses = await Promise.all(Array.from({ length: 12 }, () => login('alice', 'wrong')))
    assert.equal([countOf(responses, 401), countOf(responses, 429)], [5, 7])
  }))

test('login.mjs lets the owner of an attacked account log in, but only on a known device', () =>
  trying(async (login) => {
    const known = cookieOf(await login('alice', RIGHT))
    for (let i = 0; i < 8; i++) await login('alice', 'wrong')
    assertRefused(await login('alice', RIGHT), FIFTEEN_MINUTES_AND_A_GRANULE)
    assert.is((await login('alice', RIGHT, known)).status, 200)
    const forged = known.slice(0, -2) + (known.endsWith('AA') ? 'BB' : 'AA')
    assertRefused(await login('alice', RIGHT, forged), FIFTEEN_MINUTES_AND_A_GRANULE)
    for (let i = 0; i < 5; i++) assert.is((await login('alice', 'wrong', known)).status, 401)
    assertRefused(await login('alice', RIGHT, known), FIFTEEN_MINUTES_AND_A_GRANULE)
  }))

test('login.mjs does not extend the wait of refused clients', () =>
  trying(async (login) => {
    for (let i = 0; i < 5; i++) await login('alice', 'wrong')
    const wait = async () => Number((await login('alice', RIGHT)).headers.get('Retry-After'))
    const first = await wait()
    for (let i = 0; i < 10; i++) assert.ok((await wait()) <= first)
  }))

test('login.mjs limits an address that guesses at many accounts, without charging the accounts', () =>
  trying(async (login) => {
    const known = cookieOf(await login('alice', RIGHT))
    const responses: Response[] = []
    for (let i = 0; i < 25; i++) responses.push(await login(`account ${i}`, 'wrong'))
    assert.equal([countOf(responses, 401), countOf(responses, 429)], [20, 5])
    assertRefused(await login('alice', RIGHT), 3_600 + 60)
    assert.is((await login('alice', RIGHT, known)).status, 200)
  }))

test('login.mjs rejects invalid requests', () =>
  trying(async () => {
    for (const body of ['', '{}', 'null', '{"account":"","password":"x"}', '{"account":1,"password":"x"}']) {
      assert.is((await fetch(at, { method: 'POST', body })).status, 400, body)
    }
  }))

test.run()
