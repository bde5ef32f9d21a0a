// run: typescript, also-long, modules
// Which route's rules hold for a path.

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Routes, SEVERAL } from '#millrace/http/routes/routes.js'
import fc from '../fast-check.js'

const LOGIN = 'login'
const FREE = 'free'
const routes = new Routes(
  { 'POST /login': LOGIN, '/health': FREE, '/open/*': FREE },
  (value) => value === FREE,
)

test('each spelling of a path has the rules of its route', () => {
  for (const path of ['/login', '/LOGIN/', '//login', '/%6Cogin', '/log%69n?x', 'http://host/login#'])
    assert.is(routes.find('POST', path), LOGIN, path)
  assert.is(routes.find('GET', '/login'), undefined)
})

test('a route without a limit is found by its own spelling alone', () => {
  for (const path of ['/health', '/health?x', '/open', '/open/a', 'http://host/health'])
    assert.is(routes.find('GET', path), FREE, path)
  for (const path of ['/Health', '/health/', '//health', '/%68ealth', '/OPEN/a', '/op%65n/a'])
    assert.is(routes.find('GET', path), undefined, path)
})

test('a path that routers may read differently has the routes of all readings', () => {
  const many = new Routes({
    '/render/*': 'star',
    '/render/status': 'status',
    '/render/@me': 'me',
    '/café': 'café',
  })
  for (const [path, expected] of [
    ['/render/statu%73', ['star', 'status']],
    ['/render/statu%2573', ['star', 'status']],
    ['/render/%40me', ['star', 'me']],
    ['/%72ender/%40me', [undefined, 'star', 'me']],
    ['/%72ender/x', [undefined, 'star']],
    ['/render/a%20b%2Fc', ['star']],
    ['/caf%C3%A9', ['café']],
    ['/caf%25C3%25A9', [undefined, 'café']],
    ['/x%20y', [undefined]],
  ] as const) {
    assert.is(many.findOnly('GET', path), SEVERAL, path)
    assert.equal([...many.findAll('GET', path)], expected, path)
    assert.is(many.find('GET', path), expected.at(-1), path)
  }
  for (const path of ['/render/status', '/render/status?x=%41', 'http://host/render/status#%41'])
    assert.is(many.findOnly('GET', path), 'status', path)
})

test('the routes of all readings leave out none that has a limit', () => {
  const free = { '/open/*': FREE, '/open/secret': LOGIN }
  const some = new Routes(free, (value) => value === FREE)
  assert.equal([...some.findAll('GET', '/open/%73ecret')], [FREE, LOGIN])
  assert.equal([...some.findAll('GET', '/open/%61')], [FREE])
})

test('what is decoded is what decodeURIComponent decodes, without %2F, and nothing throws', () => {
  const one = new Routes({ '/é€😀%2fx': LOGIN })
  assert.is(one.find('GET', '/%c3%a9%E2%82%AC%f0%9f%98%80%2Fx'), LOGIN)
  const bytes = fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 12 })
  fc.assert(
    fc.property(bytes, (codes) => {
      const path = `/${codes.map((code) => `%${code.toString(16).padStart(2, '0')}`).join('')}`
      let decoded: string
      try {
        decoded = decodeURIComponent(path)
      } catch {
        return assert.is(routes.find('POST', path), undefined)
      }
      if (/[/:*?#%\s]/.test(decoded.slice(1)) || decoded === '/') return
      assert.is(new Routes({ [decoded]: LOGIN }).find('GET', path), LOGIN, path)
    }),
  )
  for (const bad of ['%ff', '%c0%80', '%ed%a0%80', '%f4%90%80%80', '%e0%80%80', '%c3'])
    assert.is(new Routes({ '/*': LOGIN }).find('GET', `/${bad.repeat(4_000)}`), LOGIN, bad)
})

test.run()
