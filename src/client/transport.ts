import {
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'

/** Certificates and keys of a connection by TLS, as texts or bytes in PEM. */
export interface ClientTls {
  /** The certificates of authorities that the client trusts, instead of those that Node.js has. */
  ca?: string | Buffer | readonly (string | Buffer)[]
  /** The client's own certificate, for mutual TLS. */
  cert?: string | Buffer
  /** The key of `cert`. */
  key?: string | Buffer
  /** The passphrase of `key`. */
  passphrase?: string
  /** The name that the certificate of the service has. @default the host of the address */
  servername?: string
}

/** An HTTP request. */
export interface Sending {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** Undefined: none. */
  readonly text: string | undefined
  readonly headers: Readonly<Record<string, string>>
}

/** An HTTP response. */
export interface Answer {
  readonly status: number
  readonly text: string
}

/** There is no whole answer. */
export class Lost {
  readonly cause: unknown
  /** Whether there was a connection: then the server may have read the request. */
  readonly wasSent: boolean

  constructor(cause: unknown, wasSent: boolean) {
    this.cause = cause
    this.wasSent = wasSent
  }
}

/** Connections to one engine at the same time. What is asked beyond that waits for one. */
const MOST_CONNECTIONS = 64
/** In UTF-16 code units: 1,024 decisions of 16 rules are a fifth of that. */
const LONGEST_ANSWER = 16_777_216

/**
 * By TLS 1.3 a client is connected before the server has read its certificate. A server that does not take it may end the
 * connection without a word.
 */
const HUNG_UP = new Error('HUNGUP the connection ended after the certificate of this client')

/** The connections to one engine, which stay open for further requests. */
export class Transport {
  readonly #request: typeof httpRequest
  readonly #agent: HttpAgent
  readonly #options: RequestOptions
  readonly #base: string
  readonly #hasCertificate: boolean

  constructor(url: URL, tls: ClientTls) {
    const isSecure = url.protocol === 'https:'
    const options = { keepAlive: true, maxSockets: MOST_CONNECTIONS }
    this.#agent = isSecure
      ? new HttpsAgent({ ...options, ...tls } as ConstructorParameters<typeof HttpsAgent>[0])
      : new HttpAgent(options)
    this.#hasCertificate = tls.cert !== undefined
    this.#request = isSecure ? httpsRequest : httpRequest
    const host = url.hostname.replace(/^\[|\]$/g, '') // an IPv6 address has brackets in a URL only
    this.#options = { agent: this.#agent, host, ...(url.port !== '' && { port: url.port }) }
    this.#base = url.pathname.replace(/\/$/, '')
  }

  /**
   * Sends a request.
   * @param onSent called when there is a connection, on which it goes out
   * @returns the answer, which rejects with a {@link Lost}, and what ends the request
   */
  send(
    { method, path, text, headers }: Sending,
    onSent: () => void,
  ): { readonly answer: Promise<Answer>; abort(): void } {
    let wasSent = false
    const request = this.#request({ ...this.#options, method, path: this.#base + path, headers })
    const note = () => {
      wasSent = true
      onSent()
    }
    request.on('socket', (socket) => {
      const isShaking = (socket as Partial<{ secureConnecting: boolean }>).secureConnecting === true
      if (isShaking) socket.once('secureConnect', note)
      else if (socket.connecting) socket.once('connect', note)
      else note()
    })
    const answer = new Promise<Answer>((resolve, reject) => {
      const fail = (error: unknown) => reject(new Lost(error, wasSent))
      request.on('error', (error: NodeJS.ErrnoException) => {
        const isAlone = wasSent && !request.reusedSocket && error.code === 'ECONNRESET'
        fail(isAlone && this.#hasCertificate ? HUNG_UP : error)
      })
      request.on('response', (response: IncomingMessage) => {
        const chunks: string[] = []
        let length = 0
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => {
          chunks.push(chunk)
          length += chunk.length
          if (length > LONGEST_ANSWER) request.destroy(new Error('the answer is too long'))
        })
        response.on('error', fail)
        response.on('end', () => resolve({ status: response.statusCode!, text: chunks.join('') }))
      })
    })
    request.end(text)
    return { answer, abort: () => request.destroy() }
  }

  close(): void {
    this.#agent.destroy()
  }
}
