// run: typescript, also-long, modules
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { parseAddress } from '#millrace/http/addresses/address.js'
import fc from '../fast-check.js'
import { groups, octets, spelled, style } from './addresses.js'

const textOf = (text: string) => parseAddress(text)?.toString()

test('an address has one spelling', () => {
  const spellings: [string, string][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:C000:201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:c000:0201', '192.0.2.1'],
    ['::ffff:192.0.2.1%eth0', '192.0.2.1'],
    ['::192.0.2.1', '192.0.2.1'],
    ['::c000:201', '192.0.2.1'],
    ['2001:DB8::1', '2001:db8::1'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:db8::192.0.2.1', '2001:db8::c000:201'],
    ['fe80::1%eth0', 'fe80::1'],
    ['64:ff9b::192.0.2.1', '64:ff9b::c000:201'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['::ffff', '::ffff'],
  ]
  for (const [text, expected] of spellings) assert.is(textOf(text), expected, text)
})

test('what is no address is refused, also the forms of IPv4 that programs read differently', () => {
  const refused = [
    '',
    ' ',
    ':',
    ':::',
    '1',
    '1.2.3',
    '1.2.3.4.',
    '1.2.3.4.5',
    '.1.2.3.4',
    '1..2.3',
    '256.1.1.1',
    '010.0.0.1',
    '1.2.3.00',
    '0x7f.0.0.1',
    '2130706433',
    '1.2.3.4%eth0',
    ' 1.2.3.4',
    '1.2.3.-4',
    '１.2.3.4',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7:8::',
    '::1:2:3:4:5:6:7:8',
    '1::2::3',
    ':1::2',
    '1::2:',
    '12345::',
    '::g',
    '::1.2.3',
    '::1.2.3.4:5',
    '::ffff:010.0.0.1',
    '1:2:3:4:5:6:7:1.2.3.4',
    '1.2.3.4::',
    '[::1]',
    '%eth0',
    'unknown',
    '_hidden',
    'localhost',
  ]
  for (const text of refused) assert.is(parseAddress(text), undefined, text)
})

test('only a part of a text is read', () => {
  const text = 'ab::1.2.3.4ff'
  assert.is(parseAddress(text, 4, 11)?.toString(), '1.2.3.4')
  assert.is(parseAddress(text, 0, 5)?.toString(), 'ab::1')
  assert.is(parseAddress(text, 0, 3), undefined)
  assert.is(parseAddress('1.2.3.45', 0, 7)?.toString(), '1.2.3.4')
  assert.is(parseAddress('::', 1, 2), undefined)
  assert.is(parseAddress('::1%', 0, 4), undefined)
})

test('a network is its first address and its length', () => {
  const address = parseAddress('2001:db8:1234:5678:9abc::1')!
  const networks: [number, string][] = [
    [32, '2001:db8::/32'],
    [33, '2001:db8::/33'],
    [48, '2001:db8:1234::/48'],
    [56, '2001:db8:1234:5600::/56'],
    [64, '2001:db8:1234:5678::/64'],
    [80, '2001:db8:1234:5678:9abc::/80'],
    [127, '2001:db8:1234:5678:9abc::/127'],
    [128, '2001:db8:1234:5678:9abc::1/128'],
  ]
  for (const [bits, expected] of networks) assert.is(address.networkOf(bits), expected)
})

test('IPv6 addresses in any style have the text and the bits that ipaddr.js gives them', () => {
  fc.assert(
    fc.property(groups, style, (address, how) => {
      const expected = new ipaddr.IPv6([...address])
      const isIPv4 = expected.isIPv4MappedAddress()
      const isCompatible = address.slice(0, 6).every((group) => group === 0) && address[6] !== 0
      const text = isIPv4
        ? expected.toIPv4Address().toString()
        : isCompatible
          ? new ipaddr.IPv4(expected.toByteArray().slice(12)).toString()
          : expected.toRFC5952String()
      assert.is(textOf(spelled(address, how)), text)
    }),
    { numRuns: 3_000 },
  )
})

test('IPv4 addresses have the bits that ipaddr.js gives them', () => {
  fc.assert(
    fc.property(octets, (address) => {
      const text = address.join('.')
      assert.is(textOf(text), text)
      assert.equal(parseAddress(text)!.words, [
        Number.parseInt(ipaddr.IPv4.parse(text).toByteArray().map(hex).join(''), 16),
      ])
    }),
  )
})

const hex = (byte: number) => byte.toString(16).padStart(2, '0')

test('Node.js and the parser agree on which texts are addresses', () => {
  const parts = fc.constantFrom(
    '0',
    '1',
    '25',
    '255',
    '256',
    '01',
    'ff',
    'FFFF',
    'fffff',
    '.',
    ':',
    '::',
    '1.2.3.4',
  )
  const text = fc.array(parts, { maxLength: 17 }).map((list) => list.join(''))
  const almost = fc.tuple(groups, style, fc.nat(40), parts).map(([address, how, at, part]) => {
    const whole = spelled(address, { ...how, zone: '' })
    return whole.slice(0, at) + part + whole.slice(at + 1)
  })
  let addresses = 0
  fc.assert(
    fc.property(fc.oneof(text, almost), (candidate) => {
      const isAddress = isIP(candidate) !== 0
      if (isAddress) addresses++
      assert.is(parseAddress(candidate) !== undefined, isAddress, candidate)
    }),
    { numRuns: 5_000 },
  )
  assert.ok(addresses > 100, `${addresses} were addresses`)
})

test.run()
