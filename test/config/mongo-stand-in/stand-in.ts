// A stand-in for a MongoDB server, where none is to be had: it speaks the wire protocol, keeps documents in memory, and
// refuses every command, field and operator that it does not know. It is no proof of what a real server does; the same
// tests run on one if `MONGODB_URL` names it.
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import type { Document } from 'bson'
import { freePort, HOST } from '../../redis/ports.js'
import { type Kind, type Place, runCommand } from './commands.js'
import { Data } from './data.js'
import { History, type StreamCursor } from './history.js'
import { numberIn } from './query.js'
import { Refusal } from './refusal.js'
import { Framer, parseMessage, type Request, replyTo } from './wire.js'

export type { Kind } from './commands.js'

export class StandIn {
  readonly port: number
  /** What was refused because the stand-in does not know it. */
  readonly refused: string[] = []
  /** How many commands of each name have come. */
  readonly counts = new Map<string, number>()
  /** How late it replies, but to hello. */
  delayMs = 0
  /** Called before a command. What it throws is the reply; what it returns is added to the reply. */
  onCommand: (name: string, command: Document) => Document | undefined | Promise<undefined> = () => undefined
  /** The name of a command after which the connection is cut, once, in place of a reply. */
  loseReplyOf: string | undefined
  readonly #history = new History()
  readonly #place: Place
  readonly #sockets = new Set<Socket>()
  /** The connections on which a getMore waits. */
  readonly #waiting = new Set<Socket>()
  #server: Server | undefined

  private constructor(kind: Kind, port: number) {
    this.port = port
    this.#place = {
      kind,
      address: `${HOST}:${port}`,
      history: this.#history,
      data: new Data(this.#history),
      streams: new Map<string, StreamCursor>(),
      replies: new Map(),
    }
  }

  /** Starts one on a free port. */
  static async start(kind: Kind): Promise<StandIn> {
    const standIn = await StandIn.onFreePort(kind)
    await standIn.listen()
    return standIn
  }

  /** One that does not listen yet. */
  static async onFreePort(kind: Kind): Promise<StandIn> {
    return new StandIn(kind, await freePort())
  }

  get url(): string {
    return `mongodb://${this.#place.address}/`
  }

  async listen(): Promise<void> {
    this.#server = createServer((socket) => this.#serve(socket)).listen(this.port, HOST)
    await once(this.#server, 'listening')
  }

  /** Closes all connections, and listens no more. The documents stay; cursors don't. */
  async stop(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    server?.close()
    this.#place.streams.clear()
    for (const socket of this.#sockets) socket.destroy()
    this.#history.wake()
    if (server?.listening) await once(server, 'close')
  }

  /** Cuts the connections by which change streams wait. */
  cutStreams(): number {
    const cut = this.#waiting.size
    for (const socket of this.#waiting) socket.destroy()
    return cut
  }

  /** Cuts change streams, and forgets where they have been. */
  forgetHistory(): void {
    this.#place.streams.clear()
    this.#history.forget()
    this.cutStreams()
  }

  /** How many connections there are. */
  get connections(): number {
    return this.#sockets.size
  }

  /** How many change streams are open. */
  get streams(): number {
    return this.#place.streams.size
  }

  #serve(socket: Socket): void {
    const framer = new Framer()
    this.#sockets.add(socket)
    socket.on('error', () => {}) // 'close' follows
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('data', (chunk) => {
      for (const message of framer.push(chunk)) void this.#answer(socket, message)
    })
  }

  async #answer(socket: Socket, message: Buffer): Promise<void> {
    let request: Request
    try {
      request = parseMessage(message)
    } catch (error) {
      this.refused.push((error as Error).message)
      socket.destroy()
      return
    }
    const name = Object.keys(request.command)[0]!
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
    if (request.isStream && request.command.maxAwaitTimeMS !== undefined) {
      await this.#stream(socket, request)
      return
    }
    if (name === 'getMore') this.#waiting.add(socket)
    const reply = await this.#run(name, request.command)
    this.#waiting.delete(socket)
    if (name === this.loseReplyOf) {
      this.loseReplyOf = undefined
      socket.destroy()
    }
    if (!request.isOneWay && !socket.destroyed) socket.write(replyTo(request, reply))
  }

  /** Answers a monitor's hello, again and again: nothing changes. */
  async #stream(socket: Socket, request: Request): Promise<void> {
    while (!socket.destroyed) {
      await late(numberIn(request.command.maxAwaitTimeMS)!)
      if (!socket.destroyed) socket.write(replyTo(request, await this.#run('hello', request.command), true))
    }
  }

  async #run(name: string, command: Document): Promise<Document> {
    try {
      if (this.delayMs > 0 && name !== 'hello' && name !== 'ismaster') await late(this.delayMs)
      const more = await this.onCommand(name, command)
      return { ...(await runCommand(this.#place, command)), ...more, ok: 1 }
    } catch (error) {
      const { code, codeName, message, labels } =
        error instanceof Refusal ? error : new Refusal(8, 'UnknownError', String(error))
      if (message.includes('does not know') || code === 8) this.refused.push(message)
      return { ok: 0, errmsg: message, code, codeName, errorLabels: labels.length > 0 ? labels : undefined }
    }
  }
}

const late = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms).unref())
