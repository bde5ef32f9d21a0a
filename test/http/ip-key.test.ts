// run: typescript, modules
// The key of a connection, and the options. Behind proxies: ip-key-proxies.test.ts.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type IpKeyOptions, ipKey, isIpKey } from '#millrace/http/addresses/ip-key.js'
import { assertRaises } from '../limiter/support.js'
import { requestFrom } from './ip-key-requests.js'

test('the key is the address of the connection, or its IPv6 network', () => {
  const keys: [string, string][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1234:5678::1', '2001:db8:1234:5600::/56'],
    ['2001:DB8:1234:56FF:ffff::9%eth0', '2001:db8:1234:5600::/56'],
    ['2001:db8:1234:5700::', '2001:db8:1234:5700::/56'],
    ['64:ff9b::192.0.2.1', '64:ff9b::c000:201'],
    ['64:ff9b::c000:202', '64:ff9b::c000:202'],
    ['64:ff9b:1::1', '64:ff9b:1::/56'],
    ['::1', '::/56'],
  ]
  const key = ipKey()
  for (const [address, expected] of keys) {
    assert.is(key(requestFrom(address)), expected)
    assert.is(key.keyOf(address), expected)
  }
})

test('ipv6Subnet is the number of bits of a key', () => {
  const address = '2001:db8:1234:5678:9abc::1'
  const keys: [number, string][] = [
    [32, '2001:db8::/32'],
    [48, '2001:db8:1234::/48'],
    [64, '2001:db8:1234:5678::/64'],
    [127, '2001:db8:1234:5678:9abc::/127'],
    [128, '2001:db8:1234:5678:9abc::1'],
  ]
  for (const [ipv6Subnet, expected] of keys) {
    const key = ipKey({ ipv6Subnet })
    assert.is(key(requestFrom(address)), expected)
    assert.is(key(requestFrom('192.0.2.1')), '192.0.2.1')
    assert.is(key.addressOf(requestFrom('2001:DB8:1234:5678:9abc::0001')), address)
  }
})

test('each address behind a prefix of NAT64 is a key, behind a prefix of your own by nat64Prefixes', () => {
  const clients = Array.from({ length: 2_000 }, (_, i) => i.toString(16))
  const keysOf = (prefix: string, options?: IpKeyOptions) =>
    new Set(clients.map((client) => ipKey(options).keyOf(`${prefix}c000:${client}`))).size
  const own = { nat64Prefixes: ['64:ff9b:1::/48', '2001:db8:64::/96'] }
  assert.is(keysOf('64:ff9b::'), 2_000)
  assert.is(keysOf('64:ff9b::', own), 2_000)
  assert.is(keysOf('64:ff9b:1::'), 1)
  assert.is(keysOf('64:ff9b:1::', own), 2_000)
  assert.is(keysOf('64:ff9b:1:fffe::', own), 2_000)
  assert.is(keysOf('2001:db8:64::', own), 2_000)
  assert.is(keysOf('2001:db8:65::', own), 1)
})

test('an address is read once from a socket, and once for each key function', () => {
  let reads = 0
  const socket = {
    get remoteAddress() {
      reads++
      return '2001:db8::1'
    },
  }
  const request = { headers: { 'x-forwarded-for': '192.0.2.7' }, socket }
  const [one, other, behind] = [ipKey(), ipKey({ ipv6Subnet: 64 }), ipKey({ trustProxy: 1 })]
  for (let i = 0; i < 3; i++) {
    assert.is(one(request), '2001:db8::/56')
    assert.is(one.addressOf(request), '2001:db8::1')
    assert.is(other(request), '2001:db8::/64')
    assert.is(behind(request), '192.0.2.7')
  }
  assert.is(reads, 3)
})

test('the address of a socket that has closed since is still known', () => {
  const socket: { remoteAddress: string | undefined } = { remoteAddress: '192.0.2.1' }
  const request = { headers: {}, socket }
  const key = ipKey()
  key(request)
  socket.remoteAddress = undefined
  assert.is(key(request), '192.0.2.1')
  assert.is(key.addressOf(request), '192.0.2.1')
})

test('a connection without an address raises ERR_MILLRACE_NO_ADDRESS', () => {
  for (const options of [{}, { trustProxy: 1 }, { trustProxy: ['loopback'] }, { trustProxy: () => true }]) {
    const key = ipKey(options)
    for (const remoteAddress of [undefined, '', '/run/app.sock', 'unknown']) {
      const request = requestFrom(remoteAddress)
      const option = 'request.socket.remoteAddress'
      assertRaises(() => key(request), 'ERR_MILLRACE_NO_ADDRESS', option)
      assertRaises(() => key.addressOf(request), 'ERR_MILLRACE_NO_ADDRESS', option)
    }
    for (const request of [
      { headers: {} },
      { headers: {}, socket: null },
      { env: {} },
      { env: { incoming: {} } },
    ]) {
      assertRaises(() => key(request as never), 'ERR_MILLRACE_NO_ADDRESS', 'request.socket')
    }
  }
})

test('without trustProxy no header is read', () => {
  const headers = { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.1' }
  for (const trustProxy of [undefined, false, 0, []] as const) {
    const key = ipKey({ trustProxy })
    assert.is(key(requestFrom('203.0.113.7', headers)), '203.0.113.7')
    assert.is(key.isBySocket, !Array.isArray(trustProxy))
  }
  assert.not(ipKey({ trustProxy: 1 }).isBySocket)
})

test('keyOf refuses what is no address', () => {
  const key = ipKey()
  for (const value of ['', 'unknown', '10.0.0.0/8', '192.0.2.1:80', 7, undefined]) {
    assertRaises(() => key.keyOf(value as string), 'ERR_MILLRACE_INVALID_OPTION', 'address')
  }
})

test('isIpKey knows the functions of ipKey', () => {
  assert.ok(isIpKey(ipKey()))
  assert.ok(isIpKey(ipKey({ trustProxy: 1 })))
  for (const value of [undefined, null, {}, () => 'key', Object.assign(() => '', { isBySocket: true })]) {
    assert.not(isIpKey(value))
  }
})

test('wrong options are named', () => {
  const wrong: [unknown, string][] = [
    [null, 'options'],
    ['1', 'options'],
    [{ trustproxy: 1 }, 'options'],
    ...[31, 129, 56.5, Number.NaN, '56', null].map((ipv6Subnet): [unknown, string] => [
      { ipv6Subnet },
      'ipv6Subnet',
    ]),
    ...[true, null, -1, 1.5, 101, Number.POSITIVE_INFINITY, Number.NaN, 'loopback', '1', {}, new Set()].map(
      (trustProxy): [unknown, string] => [{ trustProxy }, 'trustProxy'],
    ),
    [{ trustProxy: ['loopback', '10.0.0.0/8', 'private'] }, 'trustProxy[2]'],
    [{ trustProxy: [['loopback']] }, 'trustProxy[0]'],
    ...['64:ff9b:1::/48', {}, null, 1].map((nat64Prefixes): [unknown, string] => [
      { nat64Prefixes },
      'nat64Prefixes',
    ]),
    ...['::/0', '64:ff9b:1::', '64:ff9b:1::/31', '64:ff9b:1::/97', '10.0.0.0/8', 'loopback', 'x::/48', 7].map(
      (prefix): [unknown, string] => [{ nat64Prefixes: ['64:ff9b:1::/48', prefix] }, 'nat64Prefixes[1]'],
    ),
    ...['X-Forwarded-For', 'x-real-ip', null, 1].map((header): [unknown, string] => [{ header }, 'header']),
  ]
  for (const [options, option] of wrong) {
    assertRaises(() => ipKey(options as IpKeyOptions), 'ERR_MILLRACE_INVALID_OPTION', option)
  }
})

test.run()
