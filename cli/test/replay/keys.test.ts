import { parseKey, readable } from 'millrace-cli/dist/replay/keys.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const REQUEST = { atMs: 0, ip: '192.0.2.7', user: 'ada', request: 'GET /a?b=c HTTP/1.1' }
const key = (name: string, changes: Partial<typeof REQUEST> = {}) =>
  readable(parseKey(name).of({ ...REQUEST, ...changes }))
const path = (request: string) => key('path', { request })

test('a key has one or more fields, in the given order', () => {
  assert.is(key('ip'), '192.0.2.7')
  assert.is(key('user'), 'ada')
  assert.is(key('path'), '/a')
  assert.is(key('ip+path'), '192.0.2.7 /a')
  assert.is(key('path+user+ip'), '/a ada 192.0.2.7')
})

test('the path excludes the query', () => {
  assert.is(path('GET /a/b HTTP/1.1'), '/a/b')
  assert.is(path('POST /?next=/a HTTP/2.0'), '/')
  assert.is(path('GET /a#b?c HTTP/1.1'), '/a')
  assert.is(path('GET /a b/c?d e HTTP/1.1'), '/a b/c')
  assert.is(path('GET /%61 HTTP/1.1'), '/%61')
  assert.is(path('GET /old'), '/old')
  assert.is(path('GET http://shop.example/a?b HTTP/1.1'), '/a')
  assert.is(path('GET https://shop.example?b HTTP/1.1'), '/')
  assert.is(path('OPTIONS * HTTP/1.1'), '*')
  assert.is(path('CONNECT shop.example:443 HTTP/1.1'), 'shop.example:443')
})

test('an invalid request has the path -', () => {
  for (const request of ['-', '', '\\x16\\x03\\x01', 'GET', 'GET ']) assert.is(path(request), '-')
})

test('requests without a user count by address, and apart from a user of that name', () => {
  for (const user of ['-', '""']) {
    assert.is(key('user', { user }), '- 192.0.2.7')
    assert.is(key('user+path', { user }), '- 192.0.2.7 /a')
    assert.is(key('ip+user', { user }), '192.0.2.7 -')
  }
  assert.is.not(key('user', { user: '192.0.2.7' }), key('user', { user: '-' }))
  assert.equal(
    ['user', 'user+path', 'ip+user', 'path'].map((name) => parseKey(name).needsUser),
    [true, true, false, false],
  )
})

test('keys are unambiguous: a user with a space differs from another user with a path', () => {
  const both = parseKey('user+path')
  assert.is.not(
    both.of({ ...REQUEST, user: 'ada /a', request: 'GET /b HTTP/1.1' }),
    both.of({ ...REQUEST, user: 'ada', request: 'GET /a /b HTTP/1.1' }),
  )
})

test('the error for an unknown or repeated field lists the fields', () => {
  for (const name of ['', 'cookie', 'IP', 'ip+', '+ip', 'ip+ip', 'ip,path', 'ip path', 'toString'])
    assert.throws(() => parseKey(name), /^Expected ip, user or path, or several of them joined by \+/)
})

test.run()
