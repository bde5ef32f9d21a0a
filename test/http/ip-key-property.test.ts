// run: typescript, also-long, modules
// `ipKey` with random addresses and headers.

import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type IpKeyOptions, ipKey } from '#millrace/http/addresses/ip-key.js'
import fc from '../fast-check.js'
import { groups, octets, octetsOf, spelled, style } from './addresses.js'
import { requestFrom } from './ip-key-requests.js'

test('every spelling of an IPv6 address gives one key, wherever it stands', () => {
  const key = {
    socket: ipKey(),
    list: ipKey({ trustProxy: 1 }),
    forwarded: ipKey({ trustProxy: 1, header: 'forwarded' }),
  }
  const port = fc.constantFrom('', ':1', ':65535')
  fc.assert(
    fc.property(groups, style, style, port, (address, how, otherHow, ending) => {
      const expected = key.socket.keyOf(spelled(address, otherHow))
      const text = spelled(address, how)
      assert.is(key.socket(requestFrom(text)), expected)
      for (const entry of ending === '' ? [text, `[${text}]`] : [`[${text}]${ending}`]) {
        assert.is(key.list(requestFrom('::1', { 'x-forwarded-for': entry })), expected)
        assert.is(key.forwarded(requestFrom('::1', { forwarded: `for="${entry}"` })), expected)
      }
    }),
    { numRuns: 1_000 },
  )
})

test('every spelling of an IPv4 address gives one key, also those in IPv6', () => {
  const key = ipKey({ trustProxy: 1 })
  fc.assert(
    fc.property(octets, style, fc.constantFrom('', ':80'), (address, how, port) => {
      const [a, b, c, d] = address
      const mapped = [0, 0, 0, 0, 0, 0xffff, a * 256 + b, c * 256 + d]
      assert.equal([...octetsOf(mapped[6]!, mapped[7]!)], address)
      const text = spelled(mapped, how)
      for (const entry of [`${address.join('.')}${port}`, `[${text}]${port}`]) {
        assert.is(key(requestFrom('::1', { 'x-forwarded-for': entry })), address.join('.'))
      }
      assert.is(key(requestFrom(text)), address.join('.'))
    }),
  )
})

test('addresses of one network have one key, and of two networks two', () => {
  fc.assert(
    fc.property(
      groups,
      groups,
      fc.integer({ min: 32, max: 128 }),
      fc.nat(128),
      (one, other, bits, common) => {
        fc.pre(one[0]! >= 0x2000 && one[0]! < 0x4000) // unicast: no IPv4 and no NAT64
        const bitsOf = (address: readonly number[]) =>
          address.map((group) => group.toString(2).padStart(16, '0')).join('')
        const mixed = bitsOf(one).slice(0, common) + bitsOf(other).slice(common)
        const second = Array.from({ length: 8 }, (_, i) =>
          Number.parseInt(mixed.slice(16 * i, 16 * i + 16), 2),
        )
        fc.pre(second[0]! >= 0x2000 && second[0]! < 0x4000)
        const key = ipKey({ ipv6Subnet: bits })
        const [first, next] = [one, second].map((address) =>
          key.keyOf(address.map((group) => group.toString(16)).join(':')),
        )
        assert.is(first === next, bitsOf(one).slice(0, bits) === mixed.slice(0, bits))
      },
    ),
    { numRuns: 1_000 },
  )
})

/** What a client may send in a header: any text, much of it like what proxies write. */
const sent = fc
  .array(
    fc.oneof(
      fc.string({ maxLength: 6 }),
      fc.constantFrom(
        '"',
        '\\',
        ',',
        ';',
        ' ',
        'for=',
        'for="',
        '192.0.2.66',
        '10.0.0.9',
        '[::1]',
        ':80',
        '=',
        'by=',
      ),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''))

/** Headers of a client that are mostly well-formed. */
const list = fc
  .array(fc.oneof(sent, ...['192.0.2.66', '[::1]:80', 'for=192.0.2.66', 'for="[::1]"'].map(fc.constant)))
  .map((entries) => entries.join(','))

const proxies = fc.array(fc.nat(255), { maxLength: 5 }).map((list) => list.map((last) => `10.0.0.${last}`))
const separator = fc.constantFrom(', ', ',', ' ,\t')

const TRUST = {
  hops: (n: number) => n,
  list: () => ['uniquelocal'],
  function: () => (address: string) => address.startsWith('10.'),
}

for (const [name, trustOf] of Object.entries(TRUST)) {
  test(`what a client sends to the left of its proxies' entries never changes its key (by ${name})`, () => {
    const host = fc.constantFrom('', ';host="a,b"', ';host="\\"";proto=http', ';by="[::1]:1";host="\\\\"')
    fc.assert(
      fc.property(
        fc.oneof(sent, list),
        proxies,
        separator,
        host,
        fc.boolean(),
        (prefix, inside, comma, rest, isListed) => {
          const client = '203.0.113.7'
          const seen = [client, ...inside] // what each proxy has appended; the last proxy is the peer
          const entries = isListed ? seen : seen.map((address) => `for=${address}${rest}`)
          const header = isListed ? 'x-forwarded-for' : 'forwarded'
          const key = ipKey({ trustProxy: trustOf(seen.length), header })
          for (const text of [[prefix, ...entries].join(comma), entries.join(comma)]) {
            assert.is(key(requestFrom('10.0.0.1', { [header]: text })), client, text)
          }
          const lines = requestFrom('10.0.0.1', { [header]: [prefix, ...entries] })
          assert.is(key(lines), client, `lines ${prefix}`)
        },
      ),
      { numRuns: 600 },
    )
  })
}

test('no header raises an error: the client is an address', () => {
  const options = fc.record({
    trustProxy: fc.constantFrom<IpKeyOptions['trustProxy']>(1, 3, 100, ['0.0.0.0/0', '::/0'], () => true),
    header: fc.constantFrom('x-forwarded-for' as const, 'forwarded' as const),
  })
  let named = 0
  fc.assert(
    fc.property(
      fc.oneof(sent, list, fc.string({ unit: 'binary', maxLength: 50 })),
      options,
      (text, given) => {
        const key = ipKey({ ...given, ipv6Subnet: 128 })
        const client = key(requestFrom('198.51.100.1', { [given.header]: text }))
        assert.is(key.keyOf(client), client)
        if (client !== '198.51.100.1') named++
      },
    ),
    { numRuns: 1_500 },
  )
  assert.ok(named > 30, `${named} headers named another client`)
})

test.run()
