// run: also-full, also-long
/** However a client spells a path: the limit of the route that the router finds holds. */

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import fc from '../fast-check.js'
import { sized } from '../size.js'
import { sendRaw } from './raw.js'
import { MOUNT, MOUNTED, type Running, SERVERS } from './spelling-servers.js'

const RUNS = sized({ quick: 20, full: 100, long: 1_000 })

/** Spellings that went around a limit, or nearly. */
const KNOWN = [
  '/',
  '*',
  '*api/login',
  '/api/login',
  '/API/Login/',
  '/%61pi/%6Cogin',
  '//api//login',
  '/api\\login',
  '/api\\login#',
  'http://a;/api/login',
  'http://a;b/%61pi/login;x',
  '/api/login\t',
  '/api/login\f',
  '/api/login\xa0',
  '/api/login;x=1',
  '/api/login#/files/x',
  '/x/../api/login',
  '/files/../api/login',
  '/files/%2e%2e/api/login',
  '/./api/login',
  '//host/api/login',
  '/\\host/api/login',
  'http://host/api/login',
  'HTTP://host/api/login',
  'http://host/api\\login',
  'http://host?/api/login',
  'http://?/api/login',
  'http://host/?/api/login',
  'HTTP://host?/api/login',
  'http://host#/api/login',
  'http://host//api/login',
  '/users/a%2Fb/reset',
  '/users/%2f/reset',
  `/users/${'x'.repeat(3_000)}/%72eset`,
  `/%66iles/${'x'.repeat(3_000)}`,
  '/users/\xe9/reset',
  '/users/%ff/%72eset',
  '/users/%/%72eset',
  '/users/%25/%72eset',
  '/users/#/reset',
  '/caf%C3%A9',
  '/caf%c3%a9/',
  '/caf%25C3%25A9',
  '/caf%25%43%33%25A9',
  '/caf%2525C3%2525A9',
  '/files/',
  '/files',
  '/files//x',
]

const HANDLERS = /login|reset|files|cafe|info|mine|other|home/
/** One handler's path for some routers, and another's for others. */
const READ_IN_TWO_WAYS = [
  '/files/inf%6f',
  '/files/inf%256f',
  '/files/%40me',
  '/files/%2540me',
  '/%66iles/%40me',
  '/%66iles/info',
  '/%66iles/%256enfo',
  '/api/log%69n',
  '/api/log%2569n',
  '/files/INFO',
  '/FILES/info',
  '/files/info/',
  '/files//info',
  '/files//INFO/',
  '/API/LOGIN',
  '/api/login/',
  '/api//login',
  '*files/info',
  'http://host?/files/info',
]

/** A path of the routes with some of its characters spelled otherwise, and something before or after it. */
const spelling = fc
  .tuple(
    fc.constantFrom('/api/login', '/users/7/reset', '/files/a/b', '/caf%C3%A9'),
    fc.array(fc.tuple(fc.nat(20), fc.constantFrom('upper', 'percent', 'double', 'backslash', 'dot', '%2F')), {
      maxLength: 3,
    }),
    fc.constantFrom(
      '',
      '',
      '',
      '/',
      '/x/..',
      '/.',
      '//host',
      '/%2e',
      '/files/..',
      'http://host',
      'HTTPS://h:1',
      'http://host?',
      '*',
    ),
    fc.constantFrom(
      '',
      '',
      '',
      '/',
      '//',
      '?',
      '?x=/files/',
      '#',
      '#?',
      ';',
      ';x',
      '\t',
      '\xa0',
      '%20',
      '%00',
      '/.',
    ),
  )
  .map(([path, changes, before, after]) => {
    const parts = path.split('')
    for (const [at, change] of changes) {
      const i = at % path.length
      parts[i] = changed(path[i]!, change)
    }
    return before + parts.join('') + after
  })

/** Paths with some of their characters percent-encoded, once or twice: other routes for some routers. */
const encoded = fc
  .tuple(
    fc.constantFrom('/files/info', '/files/@me', '/files/a', '/api/login', '/caf%C3%A9'),
    fc.array(fc.tuple(fc.nat(20), fc.constantFrom('percent', 'twice')), { minLength: 1, maxLength: 3 }),
  )
  .map(([path, changes]) => {
    const parts = path.split('')
    for (const [at, change] of changes) {
      const i = 1 + (at % (path.length - 1))
      const once = changed(path[i]!, 'percent')
      parts[i] = change === 'twice' ? `%25${once.slice(1)}` : once
    }
    return parts.join('')
  })

function changed(character: string, how: string): string {
  if (how === 'upper') return character.toUpperCase()
  if (how === 'percent') return `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`
  if (character !== '/') return character
  return { double: '//', backslash: '\\', dot: '/./', '%2F': '%2F' }[how]!
}

/** A target for what is mounted: the prefix comes after a host, and after a first character in place of a slash. */
const mounted = (target: string): string =>
  target.replace(/^\*(?=.)/, `*${MOUNT.slice(1)}/`).replace(/^((?:[a-z]+:\/\/[^/]*)?)(?=\/)/i, `$1${MOUNT}`)

/** No spelling of a route is served under another limit. `targetOf` makes the target of a spelling. */
async function holdsFor(serve: () => Promise<Running>, targetOf: (spelt: string) => string): Promise<void> {
  const { url, close } = await serve()
  let served = 0
  const holds = async (spelt: string, handlers = /login|reset|files|cafe/) => {
    const target = targetOf(spelt)
    const { status, body, header } = await sendRaw(url, [
      `POST ${target} HTTP/1.1`,
      'Host: host',
      'Content-Length: 0',
    ])
    // What the server or the framework refuses by itself has no handler.
    if (status !== 200) return
    const rules = [...(header('ratelimit-policy') ?? '').matchAll(/"(\w+)"/g)].map(([, rule]) => rule)
    assert.ok(rules.length > 0 || body.includes('home'), `not limited: ${JSON.stringify(target)}`)
    const handler = handlers.exec(body)?.[0]
    if (handler === undefined || handler === 'home') return
    served++
    assert.ok(rules.includes(handler), `${handler}: ${rules}: ${JSON.stringify(target)}`)
  }
  try {
    for (const spelt of KNOWN) await holds(spelt)
    for (const spelt of READ_IN_TWO_WAYS) await holds(spelt, HANDLERS)
    await fc.assert(
      fc.asyncProperty(spelling, (spelt) => holds(spelt)),
      { numRuns: RUNS },
    )
    await fc.assert(
      fc.asyncProperty(encoded, (spelt) => holds(spelt, HANDLERS)),
      { numRuns: RUNS / 2 },
    )
    assert.ok(served > 3, `${served} requests reached a handler of the routes`)
  } finally {
    await close()
  }
}

/** The quick tests have node:http and Fastify, the full tests all. */
const isTested = ([name]: [string, unknown]) =>
  sized({ quick: /^(Fastify|node:http)$/, full: /./ }).test(name)

for (const [name, serve] of Object.entries(SERVERS).filter(isTested)) {
  test(`${name} serves no spelling of a limited route under another limit`, () =>
    holdsFor(serve, (spelt) => spelt))
}

for (const [name, serve] of Object.entries(MOUNTED).filter(isTested)) {
  test(`${name} serves none under another limit in a mount`, () => holdsFor(serve, mounted))
}

test.run()
