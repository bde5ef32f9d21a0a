import { emitWarning } from 'node:process'
import { lazily } from '../core/lazily.js'
import type { Address } from './addresses/address.js'
import { AddressList } from './addresses/address-list.js'
import type { HttpHeaders } from './framework.js'

/** Where proxies are. 100.64.0.0/10 is for networks of providers and clouds (RFC 6598). */
const inside = lazily(
  () => new AddressList(['loopback', 'linklocal', 'uniquelocal', '100.64.0.0/10'], 'inside'),
)

let hasWarned = false

/**
 * Warns once in a thread about a connection that looks like one of a proxy: from an inside address, with a
 * header that names another client. Without `trustProxy` all clients of the proxy are one key.
 */
export function warnIfProxied(address: Address, headers: HttpHeaders): void {
  if (hasWarned || !inside().contains(address)) return
  const name = ['X-Forwarded-For', 'Forwarded'].find((each) => headers[each.toLowerCase()] !== undefined)
  if (name === undefined) return
  hasWarned = true
  const what = `a request from ${address} has the header ${name}, which a proxy sets`
  const remedy = 'set trustProxy to the number of proxies (trustProxy: 1), or to 0 if there is none'
  emitWarning(`${what}; all clients of a proxy share one limit until it is declared: ${remedy}`, {
    type: 'MillraceWarning',
    code: 'MILLRACE_UNDECLARED_PROXY',
  })
}
