import { invalid } from '../../core/errors.js'
import { loadParts } from '../../core/lazily.js'
import { refuseUnknown } from '../../core/option-names.js'
import { type Address, parseAddress } from './address.js'
import { AddressList } from './address-list.js'
import { type Clients, ForwardedClients, type IpRequest, SocketClients } from './clients.js'
import type { ForwardedHeader } from './forwarded.js'
import { type TrustProxy, trustsOf } from './trust-proxy.js'

/** The options of {@link ipKey}. */
export interface IpKeyOptions {
  /**
   * How many bits of an IPv6 address make a key: an integer from 32 to 128. A provider gives a customer a whole
   * network, usually of 56 or 64 bits. All its addresses are one key. With a larger number a customer has many
   * keys, with a smaller one customers share a key.
   * @default 56
   */
  ipv6Subnet?: number | undefined
  /**
   * Your own prefixes of NAT64, such as `['64:ff9b:1::/48']`: IPv6 ranges of 32 to 96 bits (RFC 6052, RFC 8215). Behind
   * such a prefix each address is one IPv4 client, so the whole address is the key, and `ipv6Subnet` does not hold.
   * @default [], beside `64:ff9b::/96`, which all networks have
   */
  nat64Prefixes?: readonly string[] | undefined
  /**
   * Which proxies are trusted to name the client, in the header of the option `header`.
   * @default false: none
   */
  trustProxy?: TrustProxy | undefined
  /**
   * The header that your proxies write. The other one is never read: a proxy passes on what it does not write
   * itself, so a client could name any address in it.
   * @default 'x-forwarded-for'
   */
  header?: ForwardedHeader | undefined
}

/** A key function that {@link ipKey} has made: returns the key of a request's client. */
export interface IpKey {
  /** @throws MillraceError `ERR_MILLRACE_NO_ADDRESS` if the connection has no address */
  (request: IpRequest): string
  /**
   * The whole address of a request's client, in one spelling: `192.0.2.1`, `2001:db8::1`.
   * @throws MillraceError `ERR_MILLRACE_NO_ADDRESS` if the connection has no address
   */
  addressOf(request: IpRequest): string
  /**
   * The key of an address, to block or clear it by hand: `limiter.block(key.keyOf('2001:db8::1'), '1h')`.
   * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` for text that is no address
   */
  keyOf(address: string): string
  /** Whether the key depends on the connection alone, because no proxy is trusted. */
  readonly isBySocket: boolean
}

const DEFAULT_IPV6_SUBNET = 56
const HEADERS: readonly ForwardedHeader[] = ['x-forwarded-for', 'forwarded']
const KNOWN = ['ipv6Subnet', 'nat64Prefixes', 'trustProxy', 'header']

/** The prefix of NAT64 that all networks have. */
const WELL_KNOWN_NAT64 = '64:ff9b::/96'
/** A range of IPv6 with the length of a prefix of NAT64. */
const NAT64_PREFIX = /^[\da-f:]*:[\da-f:.]*\/(?:3[2-9]|[4-8]\d|9[0-6])$/i

const made = new WeakSet<object>()

/** Whether a function was made by {@link ipKey}. */
export const isIpKey = (value: unknown): value is IpKey => typeof value === 'function' && made.has(value)

/**
 * Makes a key function: the key of a request is its client's IP address, or for IPv6 the network of the
 * client. All spellings of an address are one key, and `::ffff:192.0.2.1` is `192.0.2.1`.
 *
 * Behind a proxy, all requests come from the proxy's address. Say which proxies are yours by `trustProxy`;
 * their header then names the client. An entry that is no address counts for the proxy that has sent it.
 *
 * @example
 * ```ts
 * import { createLimiter } from 'millrace'
 * import { ipKey } from 'millrace/http'
 *
 * const limiter = createLimiter({ limit: 100, window: '1m' })
 * const key = ipKey({ trustProxy: 1 }) // one proxy in front
 * const { allowed } = limiter.check(key(request))
 * ```
 *
 * @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` for an option that is wrong
 */
export function ipKey(options: IpKeyOptions = {}): IpKey {
  if (typeof options !== 'object' || options === null) throw invalid('options', options, 'an object')
  refuseUnknown(options, KNOWN, (name, expected) => invalid('options', name, expected))
  loadParts()
  const {
    ipv6Subnet = DEFAULT_IPV6_SUBNET,
    nat64Prefixes = [],
    trustProxy,
    header = 'x-forwarded-for',
  } = options
  if (!Number.isInteger(ipv6Subnet) || ipv6Subnet < 32 || ipv6Subnet > 128) {
    throw invalid('ipv6Subnet', ipv6Subnet, 'an integer from 32 to 128')
  }
  if (!HEADERS.includes(header))
    throw invalid('header', header, HEADERS.map((name) => `'${name}'`).join(' or '))
  const nat64 = nat64Of(nat64Prefixes)
  const trusts = trustsOf(trustProxy)
  const keyOf = (address: Address) =>
    address.isIPv4 || ipv6Subnet === 128 || nat64.contains(address)
      ? address.toString()
      : address.networkOf(ipv6Subnet)
  const clients: Clients =
    trusts === undefined
      ? new SocketClients(keyOf, trustProxy !== 0)
      : new ForwardedClients(keyOf, trusts, header)
  const key: IpKey = Object.assign((request: IpRequest) => clients.keyOf(request), {
    addressOf: (request: IpRequest) => clients.addressOf(request).toString(),
    keyOf(text: string): string {
      const address = typeof text === 'string' ? parseAddress(text) : undefined
      if (address === undefined) throw invalid('address', text, 'an IP address')
      return keyOf(address)
    },
    isBySocket: trusts === undefined,
  })
  made.add(key)
  return key
}

/** The ranges in which each address is an IPv4 client. @throws MillraceError for what is no list of prefixes */
function nat64Of(prefixes: readonly string[]): AddressList {
  if (!Array.isArray(prefixes))
    throw invalid('nat64Prefixes', prefixes, "an array such as ['64:ff9b:1::/48']")
  for (const [i, prefix] of prefixes.entries()) {
    if (typeof prefix !== 'string' || !NAT64_PREFIX.test(prefix)) {
      throw invalid(`nat64Prefixes[${i}]`, prefix, "an IPv6 range of 32 to 96 bits, such as '64:ff9b:1::/48'")
    }
  }
  return new AddressList([...prefixes, WELL_KNOWN_NAT64], 'nat64Prefixes')
}
