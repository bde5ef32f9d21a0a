// Who asks, and what that lets them do.

import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { ServiceError } from '../http/problem.js'
import type { Scope, TokenOptions } from '../options/checks.js'
import type { Settings } from '../options/table.js'

/** The caller of a request. */
export interface Caller {
  /** Differs between tokens: the hash of the token. */
  readonly id: string
  /** For the log of changes. */
  readonly name?: string | undefined
  readonly scopes: readonly Scope[]
}

/** What a request says of its caller. */
interface Asker {
  readonly headers: { readonly authorization?: string | undefined; readonly host?: string | undefined }
  readonly socket: { readonly remoteAddress?: string | undefined }
  readonly protocol: string
}

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller
  }
  interface FastifyContextConfig {
    /** What a caller needs; undefined: nothing. */
    readonly scope?: Scope
    /** A scope that is enough as well. */
    readonly orScope?: Scope
    /** A caller without the scope is answered 401, as without a token. */
    readonly isNeverForbidden?: boolean
    /** Callers on loopback need no scope. */
    readonly isOpenOnLoopback?: boolean
    /** The answer may be kept for an `Idempotency-Key`. */
    readonly isIdempotent?: boolean
  }
}

/** Callers without a token: where there are tokens, close to the engine, and elsewhere. */
const UNKNOWN: Caller = { id: '', scopes: [] }
const NEAR: Caller = { id: '', scopes: ['decide', 'read'] }
const FAR: Caller = { id: '', scopes: ['decide'] }

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

/** The tokens of callers. They can change while the engine runs. */
export class Callers {
  #known: readonly { readonly digest: Buffer; readonly caller: Caller }[] = []
  readonly #hasClientCa: boolean
  readonly #hosts: readonly string[]

  constructor({ tokens, tlsClientCa, hosts }: Pick<Settings, 'tokens' | 'tlsClientCa' | 'hosts'>) {
    this.#hasClientCa = tlsClientCa !== undefined
    this.#hosts = hosts.map((host) => host.toLowerCase())
    this.set(tokens)
  }

  set(tokens: readonly TokenOptions[]): void {
    this.#known = tokens.map(({ token, scopes, name }) => {
      const digest = sha256(token)
      return { digest, caller: { id: digest.toString('base64url'), name, scopes } }
    })
  }

  /**
   * Without configured tokens nobody can change anything, and only callers on loopback or with a client certificate
   * can read.
   * @throws ServiceError 401 for a token that is wrong; 421 for a host that is none of this machine's
   */
  callerOf(request: Asker): Caller {
    const { authorization } = request.headers
    if (authorization !== undefined) return this.#byToken(authorization)
    if (this.#known.length > 0) return UNKNOWN
    if (!this.#isForHere(request))
      throw new ServiceError(
        421,
        'ERR_MILLRACE_MISDIRECTED',
        'Host: expected a loopback name or address, or one of the option hosts, as this engine has no tokens',
        { field: 'Host', expected: 'a loopback name or address, or one of the option hosts' },
      )
    return this.#hasClientCa || isLocal(request) ? NEAR : FAR
  }

  /** Whether a caller is on this machine, and no page of a browser whose own name leads here. */
  isOnLoopback(request: Asker): boolean {
    return isLocal(request) && this.#isForHere(request)
  }

  /**
   * Whether the host is one of this machine's. A browser sends the name of the page's own site, which its owner may
   * lead to 127.0.0.1 (DNS rebinding); by TLS the certificate would not fit.
   */
  #isForHere({ headers: { host }, protocol }: Asker): boolean {
    if (protocol === 'https' || host === undefined) return true // HTTP/1.0 without a host is no browser
    const [, name = ''] = /^\[?(.*?)\]?(?::\d*)?$/.exec(host.toLowerCase()) ?? []
    return isLoopback(name) || this.#hosts.includes(name)
  }

  /** Compares with every token, in a time that does not depend on where they differ. */
  #byToken(authorization: string): Caller {
    const [, token] = /^Bearer +(\S+)$/i.exec(authorization) ?? []
    const given = sha256(token ?? '')
    let found: Caller | undefined
    for (const { digest, caller } of this.#known) if (timingSafeEqual(digest, given)) found = caller
    if (token === undefined || found === undefined)
      throw new ServiceError(401, 'ERR_MILLRACE_UNAUTHORIZED', 'The token is not one of this service.')
    return found
  }
}

const isLocal = ({ socket }: Asker): boolean => isLoopback(socket.remoteAddress ?? '')

/** Whether an address, or the name `localhost`, is of this machine only. */
export const isLoopback = (address: string): boolean =>
  address === '127.0.0.1' || // most requests, in less time
  (isIP(address) !== 0 && /^(?:::ffff:)?127\./.test(address)) ||
  address === '::1' ||
  address === 'localhost'

/** Refuses requests whose caller lacks the scope of the route, before the body is read. */
export function checkScopes(app: FastifyInstance, callers: Callers): void {
  app.decorateRequest('caller')
  app.addHook('onRequest', (request, _reply, done) => {
    const { scope, orScope, isOpenOnLoopback } = request.routeOptions.config ?? {}
    if (scope === undefined) return done()
    if (isOpenOnLoopback && callers.isOnLoopback(request)) return done()
    try {
      request.caller = callers.callerOf(request)
      if (orScope === undefined || !request.caller.scopes.includes(orScope)) requireScope(request, scope)
      if (scope === 'change') logChange(request)
    } catch (error) {
      return done(error as Error)
    }
    done()
  })
}

const logChange = ({ id, log, caller, routeOptions }: FastifyRequest): void =>
  log.info({ reqId: id, caller: caller.name, route: routeOptions.url }, 'a change is asked for')

/** The same for a call of gRPC, which no page of a browser can make. @throws ServiceError 401 or 403 */
export function requireDecide(
  callers: Callers,
  authorization: string | undefined,
  address: string | undefined,
): void {
  const { scopes } = callers.callerOf({
    headers: { authorization },
    socket: { remoteAddress: address },
    protocol: 'http',
  })
  if (scopes.includes('decide')) return
  throw authorization === undefined ? needsToken() : needsScope('decide')
}

/** @throws ServiceError 401 without a token, 403 with one that may not */
export function requireScope({ caller, headers, routeOptions }: FastifyRequest, scope: Scope): void {
  if (caller.scopes.includes(scope)) return
  const isUnknown = headers.authorization === undefined && caller.scopes.length === 0
  if (isUnknown || routeOptions.config.isNeverForbidden) throw needsToken()
  throw needsScope(scope)
}

const needsToken = (): ServiceError =>
  new ServiceError(401, 'ERR_MILLRACE_UNAUTHORIZED', 'This needs a token: Authorization: Bearer TOKEN.')

const needsScope = (scope: Scope): ServiceError =>
  new ServiceError(403, 'ERR_MILLRACE_FORBIDDEN', `This needs a token with the scope ${scope}.`)
