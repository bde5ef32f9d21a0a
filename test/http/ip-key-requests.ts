// Requests for the tests of `ipKey`.
import { type IpKeyOptions, ipKey } from '#millrace/http/addresses/ip-key.js'

type Headers = Record<string, string | string[] | undefined>

/** A request from this address, as Node.js has it. */
export const requestFrom = (remoteAddress: string | undefined, headers: Headers = {}) => ({
  headers,
  socket: { remoteAddress },
})

/** The whole address of the client of a request with this X-Forwarded-For, from 10.0.0.1. */
export function clientBehind(entries: string | string[], options: IpKeyOptions, peer = '10.0.0.1'): string {
  return ipKey(options).addressOf(requestFrom(peer, { 'x-forwarded-for': entries }))
}

/** The same by Forwarded. */
export const forwardedClient = (header: string, trustProxy: IpKeyOptions['trustProxy'] = 1): string =>
  ipKey({ trustProxy, header: 'forwarded' }).addressOf(requestFrom('10.0.0.1', { forwarded: header }))
