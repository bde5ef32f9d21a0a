// run: typescript, also-long, modules

import ipaddr from 'ipaddr.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { AddressList } from '#millrace/http/addresses/address-list.js'
import fc from '../fast-check.js'
import { assertRaises } from '../limiter/support.js'

test('a list has its addresses in every spelling, and the addresses of its ranges', () => {
  const list = new AddressList(
    ['203.0.113.7', '10.0.0.0/8', '2001:db8::/32', '::ffff:198.51.100.0/120', '2001:DB9::0001', 'loopback'],
    'allow',
  )
  const inside = [
    '203.0.113.7',
    '::ffff:203.0.113.7',
    '::FFFF:CB00:7107',
    '10.0.0.0',
    '10.255.255.255',
    '2001:db8::',
    '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff',
    '198.51.100.0',
    '::ffff:198.51.100.255',
    '2001:db9::1',
    '2001:db9::1%eth0',
    '127.0.0.53',
    '::1',
  ]
  for (const address of inside) assert.ok(list.has(address), address)
  const outside = [
    '203.0.113.6',
    '203.0.113.8',
    '9.255.255.255',
    '11.0.0.0',
    '2001:db7:ffff:ffff:ffff:ffff:ffff:ffff',
    '2001:db9::',
    '2001:db9::2',
    '198.51.101.0',
    '64:ff9b::7f00:1',
    '::2',
    '::',
    'unknown',
    '',
  ]
  for (const address of outside) assert.not(list.has(address), address)
})

test('the names are those of Express', () => {
  const names: [string, string[], string[]][] = [
    ['loopback', ['127.0.0.1', '127.255.255.255', '::1'], ['128.0.0.0', '::2', '10.0.0.1']],
    ['linklocal', ['169.254.1.1', 'fe80::1', 'febf::1'], ['169.255.0.0', 'fec0::1', '127.0.0.1']],
    [
      'uniquelocal',
      ['10.1.1.1', '172.16.0.0', '172.31.255.255', '192.168.0.1', 'fc00::1', 'fdff::1'],
      ['172.32.0.0', '172.15.255.255', '192.169.0.0', 'fe00::', '100.64.0.1'],
    ],
  ]
  for (const [name, inside, outside] of names) {
    const list = new AddressList([name], 'trustProxy')
    for (const address of inside) assert.ok(list.has(address), `${name} has ${address}`)
    for (const address of outside) assert.not(list.has(address), `${name} has not ${address}`)
  }
})

test('a range of one family has no address of the other', () => {
  const ipv4 = new AddressList(['0.0.0.0/0'], 'deny')
  const ipv6 = new AddressList(['::/0'], 'deny')
  for (const address of ['0.0.0.0', '1.2.3.4', '::ffff:255.255.255.255']) {
    assert.equal([ipv4.has(address), ipv6.has(address)], [true, false], address)
  }
  for (const address of ['::', '::1', '2001:db8::1', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff']) {
    assert.equal([ipv4.has(address), ipv6.has(address)], [false, true], address)
  }
})

test('an empty list has nothing', () => {
  assert.not(new AddressList([], 'allow').has('1.2.3.4'))
})

test('a list is copied when it is made', () => {
  const entries = ['1.2.3.4']
  const list = new AddressList(entries, 'allow')
  entries[0] = '5.6.7.8'
  assert.equal([list.has('1.2.3.4'), list.has('5.6.7.8')], [true, false])
})

test('a wrong entry is named with its index', () => {
  const wrong: unknown[] = [
    undefined,
    null,
    7,
    {},
    '',
    'localhost',
    'toString',
    'Loopback',
    ' 10.0.0.1',
    '10.0.0.1, 10.0.0.2',
    '10.0.0/8',
    '010.0.0.0/8',
    '10.0.0.0/',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/8.0',
    '10.0.0.0/08/8',
    '10.0.0.0/255.0.0.0',
    '10.0.0.0/1e1',
    '2001:db8::/129',
    '2001:db8::/4294967297',
    '::ffff:10.0.0.0/95',
    'fe80::1%eth0',
    'fe80::%eth0/64',
    '[::1]',
    'loopback/8',
  ]
  for (const entry of wrong) {
    const list = ['10.0.0.0/8', '::1', entry] as string[]
    assertRaises(() => new AddressList(list, 'allow'), 'ERR_MILLRACE_INVALID_OPTION', 'allow[2]', `${entry}`)
  }
  for (const list of [undefined, null, 'loopback', new Set(['::1']), { 0: '::1', length: 1 }]) {
    assertRaises(() => new AddressList(list as never, 'deny'), 'ERR_MILLRACE_INVALID_OPTION', 'deny')
  }
  const withHole = new Array<string>(2).fill('::1', 0, 1)
  assertRaises(() => new AddressList(withHole, 'deny'), 'ERR_MILLRACE_INVALID_OPTION', 'deny[1]')
})

test('a range that begins before the given address is refused, and the right one is named', () => {
  const ranges: [string, string][] = [
    ['10.0.0.1/8', "'10.0.0.0/8'"],
    ['192.168.1.0/23', "'192.168.0.0/23'"],
    ['2001:db8::1/64', "'2001:db8::/64'"],
    ['::ffff:10.0.0.1/104', "'10.0.0.0/8'"],
  ]
  for (const [range, expected] of ranges) {
    const act = () => new AddressList([range], 'trustProxy')
    const error = assertRaises(act, 'ERR_MILLRACE_INVALID_OPTION', 'trustProxy[0]', range)
    assert.ok(error.expected.startsWith(expected), error.message)
  }
})

/** Addresses and ranges that meet often. */
const few = fc.constantFrom(0, 1, 2, 127, 128, 255)
const ipv4 = fc.tuple(fc.constantFrom(10, 11), few, few, few).map((parts) => parts.join('.'))
const fewGroups = fc.constantFrom(0, 1, 0x7fff, 0x8000, 0xffff)
const ipv6 = fc
  .array(fewGroups, { minLength: 7, maxLength: 7 })
  .map((parts) => `2001:${parts.map((part) => part.toString(16)).join(':')}`)

const range = fc.oneof(
  fc.tuple(ipv4, fc.nat(32)).map(([address, bits]) => {
    return `${ipaddr.IPv4.networkAddressFromCIDR(`${address}/${bits}`)}/${bits}`
  }),
  fc.tuple(ipv6, fc.nat(128)).map(([address, bits]) => {
    return `${ipaddr.IPv6.networkAddressFromCIDR(`${address}/${bits}`)}/${bits}`
  }),
  ipv4,
  ipv6,
)

test('a list of any ranges has an address if ipaddr.js finds it in one of them', () => {
  const seen = { true: 0, false: 0 }
  fc.assert(
    fc.property(fc.array(range, { maxLength: 12 }), fc.oneof(ipv4, ipv6), (ranges, text) => {
      const address = ipaddr.parse(text)
      const expected = ranges.some((each) => {
        const whole = each.includes('/') ? each : `${each}/${each.includes(':') ? 128 : 32}`
        const [first, bits] = ipaddr.parseCIDR(whole)
        return first.kind() === address.kind() && address.match(first, bits)
      })
      seen[`${expected}`]++
      assert.is(new AddressList(ranges, 'allow').has(text), expected, `${ranges} has ${text}`)
    }),
    { numRuns: 5_000 },
  )
  assert.ok(seen.true > 500 && seen.false > 500, JSON.stringify(seen))
})

test.run()
