// run: typescript
import fc from 'fast-check'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type IpKeyOptions, ipKey, isIpKey } from '#millrace/http/ip-key.js'
import { assertRaises } from '../limiter/support.js'
import { groups, octets, octetsOf, spelled, style } from './addresses.js'

type Headers = Record<string, string | string[] | undefined>

const requestFrom = (remoteAddress: string | undefined, headers: Headers = {}) => ({
  headers,
  socket: { remoteAddress },
})

/** The whole address of the client of a request with this X-Forwarded-For, from 10.0.0.1. */
function clientBehind(entries: string | string[], options: IpKeyOptions, peer = '10.0.0.1'): string {
  return ipKey(options).addressOf(requestFrom(peer, { 'x-forwarded-for': entries }))
}

const forwardedClient = (header: string, trustProxy: IpKeyOptions['trustProxy'] = 1): string =>
  ipKey({ trustProxy, header: 'forwarded' }).addressOf(requestFrom('10.0.0.1', { forwarded: header }))

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

test('without trustProxy no header is read', () => {
  const headers = { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.1' }
  for (const trustProxy of [undefined, false, 0, []] as const) {
    const key = ipKey({ trustProxy })
    assert.is(key(requestFrom('203.0.113.7', headers)), '203.0.113.7')
    assert.is(key.isBySocket, !Array.isArray(trustProxy))
  }
  assert.not(ipKey({ trustProxy: 1 }).isBySocket)
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
    ...['X-Forwarded-For', 'x-real-ip', null, 1].map((header): [unknown, string] => [{ header }, 'header']),
  ]
  for (const [options, option] of wrong) {
    assertRaises(() => ipKey(options as IpKeyOptions), 'ERR_MILLRACE_INVALID_OPTION', option)
  }
})

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
