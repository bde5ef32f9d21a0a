import { MillraceError } from '../../core/errors.js'
import type { Address } from './address.js'
import { AddressList } from './address-list.js'

/**
 * Which proxies are trusted to name the client.
 * - `false`: none. The client is the other end of the connection.
 * - A number: how many proxies are in front of the server. `1`: the client is the last entry of the header.
 *   `0` is like `false`, without the warning about a proxy that was not declared.
 * - An array of addresses, ranges such as `'10.0.0.0/8'`, and the names `'loopback'`, `'linklocal'` and
 *   `'uniquelocal'`, as in Express: the proxies. The client is the first address, from the right, that is
 *   none of them.
 * - A function that says whether an address is a proxy. `hop` is 0 for the other end of the connection, and
 *   1 for the last entry of the header.
 */
export type TrustProxy = false | number | readonly string[] | ((address: string, hop: number) => boolean)

/** Whether an address is a trusted proxy. The address of a Unix socket, and of one that is closed, is undefined. */
export type Trusts = (address: Address | undefined, hop: number) => boolean

/** More proxies than any request passes. The client's own entries must not make the server read on. */
export const MAX_HOPS = 100

/** Returns undefined if no proxy is trusted. @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function trustsOf(trustProxy: unknown): Trusts | undefined {
  if (trustProxy === undefined || trustProxy === false || trustProxy === 0) return undefined
  if (isHops(trustProxy)) return (_address, hop) => hop < trustProxy
  if (Array.isArray(trustProxy)) {
    const list = new AddressList(trustProxy, 'trustProxy')
    return (address) => address !== undefined && list.contains(address)
  }
  if (typeof trustProxy === 'function') {
    return (address, hop) => address !== undefined && trustProxy(address.toString(), hop) === true
  }
  const expected = `false, a number of proxies from 0 to ${MAX_HOPS}, an array of addresses and ranges, or a function`
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', 'trustProxy', trustProxy, expected)
}

function isHops(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_HOPS
}
