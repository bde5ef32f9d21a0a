import { MillraceError } from '../core/errors.js'
import { refuseUnknown } from '../core/option-names.js'
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
const KNOWN = ['ipv6Subnet', 'trustProxy', 'header']

/** Addresses of NAT64. All IPv4 clients are in one network of 96 bits, so the whole address is the key. */
const NAT64 = new AddressList(['64:ff9b::/96'], 'NAT64')

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
  const { ipv6Subnet = DEFAULT_IPV6_SUBNET, trustProxy, header = 'x-forwarded-for' } = options
  if (!Number.isInteger(ipv6Subnet) || ipv6Subnet < 32 || ipv6Subnet > 128) {
    throw invalid('ipv6Subnet', ipv6Subnet, 'an integer from 32 to 128')
  }
  if (!HEADERS.includes(header))
    throw invalid('header', header, HEADERS.map((name) => `'${name}'`).join(' or '))
  const trusts = trustsOf(trustProxy)
  const keyOf = (address: Address) =>
    address.isIPv4 || ipv6Subnet === 128 || NAT64.contains(address)
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

function invalid(option: string, value: unknown, expected: string): MillraceError {
  return new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, value, expected)
}
