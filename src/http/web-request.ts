import { invalid } from '../core/errors.js'
import type { HttpHeaders, HttpRequest, HttpSocket } from './framework.js'

/**
 * A web `Request`, as the policy reads requests. `addressOf` is called when its client's address is read. Errors name
 * it `from`.
 */
export function httpRequestOf(
  request: Request,
  from: string,
  addressOf: () => string | undefined,
): HttpRequest {
  return new WebRequest(request, from, addressOf)
}

/** What a handler has returned. @throws MillraceError if it is no response, which would pass for one of 200 */
export function checkResponse(response: Response): Response {
  if (response?.headers !== undefined) return response
  throw invalid('handler(request, decision)', response, 'a Response')
}

/** Whether a response can be given headers: not if it upgrades the connection to a WebSocket (101). */
export const hasHeaders = ({ status }: Response): boolean => status >= 200

class WebRequest implements HttpRequest {
  readonly method: string
  readonly #request: Request
  readonly #from: string
  readonly #addressOf: () => string | undefined
  #socket: HttpSocket | undefined

  constructor(request: Request, from: string, addressOf: () => string | undefined) {
    this.#request = request
    this.#from = from
    this.#addressOf = addressOf
    this.method = request.method
  }

  get socket(): HttpSocket {
    this.#socket ??= { remoteAddress: this.#addressOf(), from: this.#from }
    return this.#socket
  }

  /** The path with its query. */
  get url(): string {
    return pathOf(this.#request)
  }

  get headers(): HttpHeaders {
    return Object.fromEntries(this.#request.headers)
  }
}

/** The path of a web request, with its query. Its `url` is absolute and well formed. */
export function pathOf({ url }: Request): string {
  const from = url.indexOf('/', url.indexOf('://') + 3)
  return from < 0 ? '/' : url.slice(from)
}
