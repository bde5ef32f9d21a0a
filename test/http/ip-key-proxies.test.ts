// run: typescript, modules
// Whom `ipKey` takes for the client behind proxies: what it trusts, and how it reads the headers.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ipKey } from '#millrace/http/addresses/ip-key.js'
import { assertRaises } from '../limiter/support.js'
import { clientBehind, forwardedClient, requestFrom } from './ip-key-requests.js'

test('behind a proxy on a Unix socket, a number of proxies counts it, and no list or function does', () => {
  const headers = { 'x-forwarded-for': '192.0.2.9, 192.0.2.1' }
  assert.is(ipKey({ trustProxy: 1 })(requestFrom(undefined, headers)), '192.0.2.1')
  assert.is(ipKey({ trustProxy: 2 })(requestFrom(undefined, headers)), '192.0.2.9')
  // The socket may as well be one of a client that has closed it.
  for (const trustProxy of [['loopback', '0.0.0.0/0', '::/0'], () => true]) {
    const act = () => ipKey({ trustProxy })(requestFrom(undefined, headers))
    assertRaises(act, 'ERR_MILLRACE_NO_ADDRESS', 'request.socket.remoteAddress')
  }
})

test('a number of proxies counts entries from the right', () => {
  const entries = '192.0.2.1, 192.0.2.2 ,192.0.2.3'
  const clients = [1, 2, 3, 4, 100].map((trustProxy) => clientBehind(entries, { trustProxy }))
  assert.equal(clients, ['192.0.2.3', '192.0.2.2', '192.0.2.1', '192.0.2.1', '192.0.2.1'])
  assert.is(clientBehind('', { trustProxy: 2 }), '10.0.0.1')
  assert.is(ipKey({ trustProxy: 2 })(requestFrom('10.0.0.1')), '10.0.0.1')
})

test('with a list, the client is the first address from the right that is not in it', () => {
  const trustProxy = ['loopback', 'uniquelocal', '198.51.100.0/24', '2001:db8:ffff::/48']
  const clients: [string, string][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.9, 192.0.2.1', '192.0.2.1'],
    ['192.0.2.9, 192.0.2.1, 10.1.1.1', '192.0.2.1'],
    ['192.0.2.9, 192.0.2.1, 198.51.100.7:8080, ::ffff:10.1.1.1, 127.0.0.1, [2001:db8:ffff::1]', '192.0.2.1'],
    ['10.1.1.1, 10.1.1.2', '10.1.1.1'],
    ['2001:db8::1, 10.1.1.2', '2001:db8::1'],
  ]
  for (const [entries, client] of clients) {
    assert.is(clientBehind(entries, { trustProxy }), client, entries)
    assert.is(
      clientBehind(entries, { trustProxy }, '203.0.113.7'),
      '203.0.113.7',
      `${entries} from a stranger`,
    )
  }
})

test('a function is given one spelling of each address and its distance, and only true is trust', () => {
  const calls: [string, number][] = []
  const trustProxy = (address: string, hop: number) => {
    calls.push([address, hop])
    return hop < 2
  }
  const entries = '192.0.2.1, 2001:DB8::0001, ::ffff:10.0.0.2'
  assert.is(clientBehind(entries, { trustProxy }, '::ffff:10.0.0.1'), '2001:db8::1')
  assert.equal(calls, [
    ['10.0.0.1', 0],
    ['10.0.0.2', 1],
    ['2001:db8::1', 2],
  ])
  for (const answer of ['yes', 1, {}, Promise.resolve(true)]) {
    assert.is(clientBehind(entries, { trustProxy: (() => answer) as never }), '10.0.0.1')
  }
})

test('entries may have brackets, ports and blanks', () => {
  const entries: [string, string][] = [
    ['192.0.2.1:80', '192.0.2.1'],
    ['192.0.2.1:65535', '192.0.2.1'],
    ['[2001:DB8::1]:4711', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[fe80::1%eth0]:1', 'fe80::1'],
    ['[::ffff:192.0.2.1]:443', '192.0.2.1'],
    ['2001:db8::1:4711', '2001:db8::1:4711'],
    ['\t 192.0.2.1 \t', '192.0.2.1'],
    ['192.0.2.1, ', '192.0.2.1'],
    ['192.0.2.1,,\t,', '192.0.2.1'],
  ]
  for (const [entry, client] of entries) {
    assert.is(clientBehind(entry, { trustProxy: 1 }), client, entry)
    assert.is(clientBehind(`192.0.2.9, ${entry}`, { trustProxy: 1 }), client, entry)
  }
})

const GARBAGE = [
  'unknown',
  '_hidden',
  '-',
  'null',
  'localhost',
  '1.2.3',
  '1.2.3.4.5',
  '010.0.0.1',
  '1.2.3.4:',
  '1.2.3.4:http',
  '1.2.3.4:123456',
  '[1.2.3.4',
  '[::1]x',
  '[::1]]',
  '[]',
  '"1.2.3.4"',
  '1.2.3.4 5.6.7.8',
  '1.2.3.4;5.6.7.8',
  'for=1.2.3.4',
  '\u0000',
  '::1::',
  '%',
  '9'.repeat(600),
  ' '.repeat(600),
]

test('an entry that is no address counts for the proxy that has sent it', () => {
  for (const entry of GARBAGE) {
    for (const trustProxy of [2, 3, ['uniquelocal'], (_address: string, hop: number) => hop < 3]) {
      assert.is(clientBehind(entry, { trustProxy }), '10.0.0.1', entry)
      assert.is(clientBehind(`192.0.2.1, ${entry}`, { trustProxy }), '10.0.0.1', entry)
      assert.is(clientBehind(`192.0.2.1, ${entry}, 10.0.0.2`, { trustProxy }), '10.0.0.2', entry)
    }
  }
})

test('several lines of a header are one list', () => {
  const lines = ['192.0.2.1', '192.0.2.2, 192.0.2.3', '192.0.2.4']
  const clients = [1, 2, 3, 4].map((trustProxy) => clientBehind(lines, { trustProxy }))
  assert.equal(clients, ['192.0.2.4', '192.0.2.3', '192.0.2.2', '192.0.2.1'])
})

test('only the header that the proxies write is read', () => {
  const headers = { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.2', 'x-real-ip': '192.0.2.3' }
  const request = requestFrom('10.0.0.1', headers)
  assert.is(ipKey({ trustProxy: 1 })(request), '192.0.2.1')
  assert.is(ipKey({ trustProxy: 1, header: 'x-forwarded-for' })(request), '192.0.2.1')
  assert.is(ipKey({ trustProxy: 1, header: 'forwarded' })(request), '192.0.2.2')
  const { forwarded, 'x-forwarded-for': xForwardedFor } = headers
  assert.is(ipKey({ trustProxy: 1 })(requestFrom('10.0.0.1', { forwarded })), '10.0.0.1')
  const other = requestFrom('10.0.0.1', { 'x-forwarded-for': xForwardedFor })
  assert.is(ipKey({ trustProxy: 1, header: 'forwarded' })(other), '10.0.0.1')
})

test('Forwarded is read by RFC 7239', () => {
  const clients: [string, string][] = [
    ['for=192.0.2.1', '192.0.2.1'],
    ['For="[2001:DB8::1]:4711"', '2001:db8::1'],
    ['FOR="192.0.2.1:80"', '192.0.2.1'],
    ['for="192.0.2.1:_port"', '192.0.2.1'],
    ['for=192.0.2.1;proto=http;by=203.0.113.43', '192.0.2.1'],
    ['by=203.0.113.43; proto=https; for=192.0.2.1;', '192.0.2.1'],
    ['host="a,b;for=192.0.2.9";for=192.0.2.1', '192.0.2.1'],
    ['for=192.0.2.1;host="a\\", for=192.0.2.9;x=\\\\"', '192.0.2.1'],
    ['for=192.0.2.9, for=192.0.2.1;host="\\\\"', '192.0.2.1'],
    ['for=192.0.2.9;x=", for=192.0.2.1', '192.0.2.1'],
    ['"""for=192.0.2.9\\, for=192.0.2.1;;proto=http', '192.0.2.1'],
    ['for=192.0.2.1:80', '192.0.2.1'],
    ['for=2001:db8::1', '2001:db8::1'],
    ['for=[2001:db8::1]', '2001:db8::1'],
    ['for=192.0.2.1,', '192.0.2.1'],
  ]
  for (const [header, client] of clients) assert.is(forwardedClient(header), client, header)
  const chain = 'for=192.0.2.1, for="[2001:db8::7]";by="[::1]", for=10.0.0.3'
  assert.equal(
    [1, 2, 3, 4].map((hops) => forwardedClient(chain, hops)),
    ['10.0.0.3', '2001:db8::7', '192.0.2.1', '192.0.2.1'],
  )
  assert.is(forwardedClient(chain, ['uniquelocal']), '2001:db8::7')
})

test('an element of Forwarded without an address counts for the proxy that has sent it', () => {
  const elements = [
    'for=unknown',
    'for=_hidden',
    'for="_SEVKISEK"',
    'for=""',
    'for=',
    'for',
    'proto=https;by=192.0.2.1',
    'for=192.0.2.1;for=192.0.2.2',
    'for=192.0.2.1;For=192.0.2.1',
    'for=192.0.2.1 192.0.2.2',
    'for="192.0.2.1',
    'for=192.0.2.1"',
    'for="192.0.2.1"x',
    'for="192.0.2.\\1"',
    'for=192.0.2.1;host=a b',
    'for=192.0.2.1;host=a\\',
    'for = 192.0.2.1',
    '192.0.2.1',
    `for=192.0.2.1;host="${'a'.repeat(600)}"`,
    '"',
    '\\"',
  ]
  for (const element of elements) {
    assert.is(forwardedClient(element, 2), '10.0.0.1', element)
    assert.is(forwardedClient(`for=192.0.2.9, ${element}, for=10.0.0.2`, 2), '10.0.0.2', element)
    assert.is(
      forwardedClient(`for=192.0.2.9, ${element}, for=10.0.0.2`, ['uniquelocal']),
      '10.0.0.2',
      element,
    )
  }
})

test('at most 100 entries are read, also empty ones', () => {
  const trusted = Array.from({ length: 5_000 }, (_, i) => `10.${i >> 8}.${i & 255}.1`)
  for (const trustProxy of [['uniquelocal'], 100, () => true]) {
    assert.is(clientBehind(trusted.join(','), { trustProxy }), trusted.at(-100))
    assert.is(clientBehind(`192.0.2.1,10.0.0.7${', '.repeat(99)}`, { trustProxy }), '10.0.0.7')
    assert.is(clientBehind(`192.0.2.1,10.0.0.7${','.repeat(100)}`, { trustProxy }), '10.0.0.1')
    assert.is(clientBehind(','.repeat(65_536), { trustProxy }), '10.0.0.1')
  }
})

test.run()
