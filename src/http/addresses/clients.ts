/** Find the client of a request: the other end of its connection, or whom trusted proxies name. */
import { MillraceError } from '../../core/errors.js'
import type { HttpRequest, HttpSocket } from '../framework.js'
import { warnIfProxied } from '../undeclared-proxy.js'
import { httpRequestOf as webRequestOf } from '../web-request.js'
import { type Address, parseAddress } from './address.js'
import { ForwardedElements, type ForwardedHeader } from './forwarded.js'
import { MAX_HOPS, type Trusts } from './trust-proxy.js'

/**
 * A request of Node.js, Express or Fastify, or the context of Koa or of Hono on Node.js. A web `Request` has no
 * address: only a proxy, by `trustProxy`, tells it.
 */
export type IpRequest = HttpRequest | Request | { readonly env: unknown }

export interface Clients {
  /** The key of a request's client. @throws MillraceError `ERR_MILLRACE_NO_ADDRESS` */
  keyOf(request: IpRequest): string
  /** The address of a request's client. @throws MillraceError `ERR_MILLRACE_NO_ADDRESS` */
  addressOf(request: IpRequest): Address
}

/** The key of an address. */
type KeyOf = (address: Address) => string

/** A socket with a field for what was found out about it. */
type Keeping<Value> = HttpSocket & { [field: symbol]: Value | undefined }

interface Client {
  readonly address: Address
  readonly key: string
}

/**
 * Clients by the other end of their connection. Its address is parsed once, and kept with its key in a field
 * of the socket. That takes half the time of a WeakMap. Besides, the `socket` of an HTTP/2 request is a proxy
 * object of that request, which passes on fields to the socket of its session.
 */
export class SocketClients implements Clients {
  readonly #field = Symbol('millrace client')
  readonly #keyOf: KeyOf
  readonly #warns: boolean

  constructor(keyOf: KeyOf, warns: boolean) {
    this.#keyOf = keyOf
    this.#warns = warns
  }

  keyOf(request: IpRequest): string {
    return this.#clientOf(request).key
  }

  addressOf(request: IpRequest): Address {
    return this.#clientOf(request).address
  }

  #clientOf(request: IpRequest): Client {
    const own = httpRequestOf(request)
    return (own.socket as Keeping<Client>)[this.#field] ?? this.#keep(own)
  }

  #keep({ headers, socket }: HttpRequest): Client {
    const address = peerOf(socket)
    if (address === undefined) throw noAddress(socket)
    if (this.#warns) warnIfProxied(address, headers)
    const client = { address, key: this.#keyOf(address) }
    ;(socket as Keeping<Client>)[this.#field] = client
    return client
  }
}

/** Clients by the header of trusted proxies. The parsed address of the nearest proxy is kept in its socket. */
export class ForwardedClients implements Clients {
  readonly #field = Symbol('millrace peer')
  readonly #keyOf: KeyOf
  readonly #trusts: Trusts
  readonly #header: ForwardedHeader

  constructor(keyOf: KeyOf, trusts: Trusts, header: ForwardedHeader) {
    this.#keyOf = keyOf
    this.#trusts = trusts
    this.#header = header
  }

  keyOf(request: IpRequest): string {
    return this.#keyOf(this.addressOf(request))
  }

  /**
   * Goes from the other end of the connection to the left, while the address is that of a trusted proxy and
   * the next element of the header is an address.
   */
  addressOf(request: IpRequest): Address {
    const { headers, socket } = httpRequestOf(request)
    let client = this.#peerOf(socket)
    const lines = headers[this.#header]
    if (lines !== undefined) {
      const text = typeof lines === 'string' ? lines : lines.join(',')
      const elements = new ForwardedElements(this.#header, text, MAX_HOPS)
      for (let hop = 0; this.#trusts(client, hop); hop++) {
        const next = elements.previous()
        if (next === undefined) break
        client = next
      }
    }
    if (client === undefined) throw noAddress(socket)
    return client
  }

  #peerOf(socket: HttpSocket): Address | undefined {
    const keeping = socket as Keeping<Address>
    const kept = keeping[this.#field]
    if (kept !== undefined) return kept
    const address = peerOf(socket)
    if (address !== undefined) keeping[this.#field] = address
    return address
  }
}

/** The request of Node.js in what a framework hands to its handlers. */
function httpRequestOf(request: IpRequest): HttpRequest {
  const { socket } = request as Partial<HttpRequest>
  if (socket !== undefined && socket !== null) return request as HttpRequest
  const { env } = request as { env?: { incoming?: HttpRequest } }
  if (env?.incoming?.socket) return env.incoming
  if (isWebRequest(request)) return webRequestOf(request, 'request', () => undefined)
  const expected = 'the connection of a request of Node.js, or of a framework on it'
  throw new MillraceError('ERR_MILLRACE_NO_ADDRESS', 'request.socket', socket, expected)
}

const isWebRequest = (request: object): request is Request =>
  typeof (request as Partial<Request>).headers?.get === 'function'

/** The address of the other end of a connection. */
function peerOf({ remoteAddress }: HttpSocket): Address | undefined {
  return typeof remoteAddress === 'string' ? parseAddress(remoteAddress) : undefined
}

function noAddress({ remoteAddress, from }: HttpSocket): MillraceError {
  const why =
    from === undefined
      ? 'the connection has closed, or is one of a Unix socket without trustProxy'
      : "a web Request has none: it comes from the option address of rateLimit or, with trustProxy, from a proxy's header"
  const option = from ?? 'request.socket.remoteAddress'
  return new MillraceError('ERR_MILLRACE_NO_ADDRESS', option, remoteAddress, `an IP address: ${why}`)
}
