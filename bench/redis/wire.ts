// A connection that sends prepared bytes, so that a measurement of the server contains no client library.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export type Reply = number | string | null | Error | Reply[]

/** The bytes of a command. */
export function encoded(parts: readonly (string | Buffer)[]): Buffer {
  const chunks: (string | Buffer)[] = [`*${parts.length}\r\n`]
  for (const part of parts) chunks.push(`$${Buffer.byteLength(part)}\r\n`, part, '\r\n')
  return Buffer.concat(chunks.map((chunk) => (typeof chunk === 'string' ? Buffer.from(chunk) : chunk)))
}

export class Wire {
  readonly #socket: Socket
  #unread = Buffer.alloc(0)
  #replies: Reply[] = []
  #wanted = 0
  #settle: (replies: Reply[]) => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', (chunk) => this.#read(chunk))
  }

  static async connect(port: number): Promise<Wire> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    await once(socket, 'connect')
    return new Wire(socket)
  }

  /** Sends commands together. Only one pipeline at a time. @throws Error if a reply is one */
  async pipeline(commands: readonly Buffer[]): Promise<Reply[]> {
    const replies = await new Promise<Reply[]>((resolve) => {
      this.#wanted = commands.length
      this.#settle = resolve
      this.#socket.write(Buffer.concat(commands))
    })
    const failed = replies.find((reply) => reply instanceof Error)
    if (failed !== undefined) throw failed
    return replies
  }

  async send(...parts: (string | Buffer)[]): Promise<Reply> {
    return (await this.pipeline([encoded(parts)]))[0]!
  }

  /** Microseconds of processor time that the server's main thread has used. */
  async cpuUs(): Promise<number> {
    const info = String(await this.send('INFO', 'cpu'))
    const seconds = (name: string) => Number(new RegExp(`^used_cpu_${name}:(.*)$`, 'm').exec(info)?.[1])
    return 1e6 * (seconds('user_main_thread') + seconds('sys_main_thread'))
  }

  close(): void {
    this.#socket.destroy()
  }

  #read(chunk: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, chunk])
    let at = 0
    for (let next = replyAt(this.#unread, at); next !== undefined; next = replyAt(this.#unread, at)) {
      this.#replies.push(next.reply)
      at = next.end
    }
    this.#unread = this.#unread.subarray(at)
    if (this.#replies.length < this.#wanted) return
    const replies = this.#replies
    this.#replies = []
    this.#settle(replies)
  }
}

/** The reply that begins there, and its end; undefined if it is not complete. */
function replyAt(bytes: Buffer, at: number): { reply: Reply; end: number } | undefined {
  const lineEnd = bytes.indexOf('\r\n', at)
  if (lineEnd < 0) return undefined
  const kind = String.fromCharCode(bytes[at]!)
  const line = bytes.toString('latin1', at + 1, lineEnd)
  let end = lineEnd + 2
  if (kind === '+') return { reply: line, end }
  if (kind === '-') return { reply: new Error(line), end }
  if (kind === ':') return { reply: Number(line), end }
  const length = Number(line)
  if (length < 0) return { reply: null, end }
  if (kind === '$') {
    if (bytes.length < end + length + 2) return undefined
    return { reply: bytes.toString('latin1', end, end + length), end: end + length + 2 }
  }
  const all: Reply[] = []
  for (let i = 0; i < length; i++) {
    const next = replyAt(bytes, end)
    if (next === undefined) return undefined
    all.push(next.reply)
    end = next.end
  }
  return { reply: all, end }
}
