import type { HttpHeaders, HttpRequest } from './framework.js'

/** A web `Request`, as the policy reads requests. `address` is that of the client. */
export function httpRequestOf(request: Request, address: string | undefined): HttpRequest {
  return new WebRequest(request, address)
}

class WebRequest implements HttpRequest {
  readonly method: string
  readonly socket: { readonly remoteAddress: string | undefined }
  readonly #request: Request

  constructor(request: Request, address: string | undefined) {
    this.#request = request
    this.method = request.method
    this.socket = { remoteAddress: address }
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
