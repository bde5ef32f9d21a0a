/** Loads a server of this machine with single checks, over raw connections: the client must not be what is measured. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createHistogram } from 'node:perf_hooks'

export const CONNECTIONS = 64
const KEYS = 5_000
const HOST = '127.0.0.1'
const END_OF_JSON = '}'.charCodeAt(0)
const OK = 'HTTP/1.1 200 '

const REQUESTS: readonly Buffer[] = Array.from({ length: KEYS }, (_, i) => {
  const body = JSON.stringify({ key: `user:${1_000_000 + i}` })
  const head = `POST /v1/check HTTP/1.1\r\nHost: ${HOST}\r\nContent-Type: application/json`
  return Buffer.from(`${head}\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
})

/** One request at a time. */
class Connection {
  readonly #socket: Socket
  #onAnswer: (() => void) | undefined
  #answer = ''

  /** @param onError called with an answer other than 200, or when the server closes it */
  constructor(socket: Socket, onError: (error: Error) => void) {
    this.#socket = socket
    socket.on('data', (bytes: Buffer) => {
      this.#answer += bytes.toString('latin1')
      if (bytes.at(-1) !== END_OF_JSON) return
      if (!this.#answer.startsWith(OK)) return onError(new Error(`the server answered: ${this.#answer}`))
      this.#answer = ''
      const onAnswer = this.#onAnswer!
      this.#onAnswer = undefined
      onAnswer()
    })
    socket.on('error', onError)
  }

  send(request: Buffer, onAnswer: () => void): void {
    this.#onAnswer = onAnswer
    this.#socket.write(request)
  }

  close(): void {
    this.#socket.destroy()
  }
}

/** What came of a load. */
export interface Answered {
  readonly answers: number
  readonly perSecond: number
}

/** Connections to one server, which stay open between loads. */
export class Loader {
  readonly #connections: readonly Connection[]
  readonly #failed: Promise<never>
  #next = 0

  private constructor(connections: readonly Connection[], failed: Promise<never>) {
    this.#connections = connections
    this.#failed = failed
  }

  static async connect(port: number): Promise<Loader> {
    let fail!: (error: Error) => void
    const failed = new Promise<never>((_, reject) => {
      fail = reject
    })
    failed.catch(() => {}) // between loads nothing awaits it
    const connections = await Promise.all(
      Array.from({ length: CONNECTIONS }, async () => {
        const socket = connect(port, HOST).setNoDelay()
        await once(socket, 'connect')
        return new Connection(socket, fail)
      }),
    )
    return new Loader(connections, failed)
  }

  /** Each connection sends its next request when it has an answer, for so long. */
  atFullSpeed(durationMs: number): Promise<Answered> {
    return this.#until((_, elapsedMs) => elapsedMs >= durationMs)
  }

  /** The same for so many answers: V8 has compiled a server by its requests, however slow the machine is. */
  async warmUp(requests: number): Promise<void> {
    await this.#until((answers) => answers >= requests)
  }

  async #until(isOver: (answers: number, elapsedMs: number) => boolean): Promise<Answered> {
    const startMs = performance.now()
    let answers = 0
    const ended = this.#connections.map(
      (connection) =>
        new Promise<void>((resolve) => {
          const send = () => connection.send(this.#request(), onAnswer)
          const onAnswer = () => {
            answers++
            if (isOver(answers, performance.now() - startMs)) resolve()
            else send()
          }
          send()
        }),
    )
    await Promise.race([Promise.all(ended), this.#failed])
    return { answers, perSecond: (1_000 * answers) / (performance.now() - startMs) }
  }

  /**
   * Sends so many requests a second, whether or not there are answers: what finds no free connection waits, and its
   * waiting counts. Resolves with the 99th percentile of the times from a request until its answer.
   */
  async atRate(perSecond: number, durationMs: number): Promise<number> {
    const latencyUs = createHistogram()
    const free = [...this.#connections]
    const waiting: number[] = []
    let open = 0
    let onIdle: (() => void) | undefined
    const send = (connection: Connection, sinceMs: number) => {
      open++
      connection.send(this.#request(), () => {
        open--
        latencyUs.record(Math.max(1, Math.round(1_000 * (performance.now() - sinceMs))))
        const next = waiting.shift()
        if (next !== undefined) send(connection, next)
        else free.push(connection)
        if (open === 0) onIdle?.()
      })
    }
    const startMs = performance.now()
    let sent = 0
    const paced = new Promise<void>((resolve) => {
      const tick = () => {
        const nowMs = performance.now()
        const elapsedMs = nowMs - startMs
        for (const due = (Math.min(elapsedMs, durationMs) * perSecond) / 1_000; sent < due; sent++) {
          const connection = free.pop()
          if (connection === undefined) waiting.push(nowMs)
          else send(connection, nowMs)
        }
        if (elapsedMs < durationMs) setTimeout(tick, 1)
        else if (open === 0) resolve()
        else onIdle = resolve
      }
      tick()
    })
    await Promise.race([paced, this.#failed])
    return latencyUs.percentile(99) / 1_000
  }

  close(): void {
    for (const connection of this.#connections) connection.close()
  }

  #request(): Buffer {
    this.#next = (this.#next + 1) % KEYS
    return REQUESTS[this.#next]!
  }
}
