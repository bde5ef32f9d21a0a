// A TCP proxy in front of a server, which loses, delays and holds what passes through it.
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { freePort, HOST } from './ports.js'
import { Passage } from './proxy-passage.js'

/** What all connections of a proxy do with the bytes that arrive. */
export interface Behaviour {
  /** How many more times a connection is closed when a reply arrives. */
  repliesToCut: number
  requestsToCut: number
  delayMs: number
  isHeld: boolean
  isSilent: boolean
  before: (() => Promise<unknown>) | undefined
}

const NORMAL: Readonly<Behaviour> = {
  repliesToCut: 0,
  requestsToCut: 0,
  delayMs: 0,
  isHeld: false,
  isSilent: false,
  before: undefined,
}
const PORT_ATTEMPTS = 5

/**
 * Starts a proxy on a free port. A reply and a request are what arrives at once, from the server or from the
 * client: a pipeline of commands may be one request.
 */
export async function startProxy(serverPort: number): Promise<TcpProxy> {
  for (let attempt = 1; ; attempt++) {
    const proxy = new TcpProxy(await freePort(), serverPort)
    try {
      await proxy.accept()
      return proxy
    } catch (error) {
      if (attempt === PORT_ATTEMPTS) throw error
    }
  }
}

export class TcpProxy {
  readonly port: number
  #serverPort: number
  readonly #behaviour: Behaviour = { ...NORMAL }
  readonly #open = new Set<Passage>()
  #listener: Server | undefined
  #accepted = 0
  #cut = 0
  #lost = 0

  /** @internal Use {@link startProxy}. */
  constructor(port: number, serverPort: number) {
    this.port = port
    this.#serverPort = serverPort
  }

  /** The number of connections accepted so far. */
  get accepted(): number {
    return this.#accepted
  }

  /** The number of connections that are open. */
  get open(): number {
    return this.#open.size
  }

  /** The number of connections closed by `cutReplies`, `cutRequests` and `cutAll`. */
  get cut(): number {
    return this.#cut
  }

  /** The number of requests and replies lost to `dropAll` and `forgetOpen`. */
  get lost(): number {
    return this.#lost
  }

  /** Later connections go to another server. Those that are open stay. */
  point(serverPort: number): void {
    this.#serverPort = serverPort
  }

  /** Closes a connection when the next reply arrives, before forwarding it; `times` times. */
  cutReplies(times = 1): void {
    this.#behaviour.repliesToCut = times
  }

  /** Closes a connection when the next request arrives, before forwarding it; `times` times. */
  cutRequests(times = 1): void {
    this.#behaviour.requestsToCut = times
  }

  /** Closes all open connections now. */
  cutAll(): void {
    for (const passage of this.#open) this.#cutOne(passage)
  }

  /** Forwards each reply that arrives from now on this many milliseconds later. */
  delayReplies(ms: number): void {
    this.#behaviour.delayMs = ms
  }

  /** Each request that arrives from now on waits for this. */
  beforeRequests(act: () => Promise<unknown>): void {
    this.#behaviour.before = act
  }

  /** Keeps replies until `release`. Requests pass. */
  hold(): void {
    this.#behaviour.isHeld = true
  }

  /** Forwards the replies that were held. */
  release(): void {
    this.#behaviour.isHeld = false
    for (const passage of this.#open) passage.forward()
  }

  /** Accepts connections and loses all that arrives, in both directions, until `restore`. */
  dropAll(): void {
    this.#behaviour.isSilent = true
  }

  /** Loses all that arrives on the connections that are open now, for ever. New ones are not affected. */
  forgetOpen(): void {
    for (const passage of this.#open) passage.isForgotten = true
  }

  /** Back to forwarding everything. Connections that have lost something are closed. */
  restore(): void {
    Object.assign(this.#behaviour, NORMAL)
    for (const passage of this.#open)
      if (passage.hasLost && !passage.isForgotten) passage.close()
      else passage.forward()
  }

  /** Closes the listener: new connections are refused. Open ones stay; see `cutAll`. */
  refuse(): void {
    this.#listener?.close()
    this.#listener = undefined
  }

  /** Listens again on the same port. */
  async accept(): Promise<void> {
    if (this.#listener) return
    const listener = createServer((socket) => this.#pass(socket))
    listener.listen(this.port, HOST)
    await once(listener, 'listening')
    listener.unref()
    this.#listener = listener
  }

  /** Refuses connections and closes all open ones. */
  close(): void {
    this.refuse()
    for (const passage of this.#open) passage.close()
  }

  #pass(client: Socket): void {
    this.#accepted++
    const passage: Passage = new Passage(client, this.#serverPort, this.#behaviour, {
      cut: () => this.#cutOne(passage),
      lost: () => void this.#lost++,
      closed: () => void this.#open.delete(passage),
    })
    this.#open.add(passage)
  }

  #cutOne(passage: Passage): void {
    this.#cut++
    passage.close()
  }
}
