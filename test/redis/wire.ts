// A connection to a Redis that sends and parses the bytes of the protocol itself (RESP2), so that tests look
// at the server without the client that they test.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { HOST } from './ports.js'

export type Argument = string | number | Uint8Array
/** A reply whose bulk strings are `Bulk`. An integer beyond 2^53 is a bigint. */
export type Reply<Bulk> = Bulk | string | number | bigint | null | ReplyError | Reply<Bulk>[]
// biome-ignore lint/suspicious/noExplicitAny: a test knows the shape of the reply to its command
type Expected = any

/** An error that the server replied. */
export class ReplyError extends Error {
  override readonly name = 'ReplyError'
  /** The first word of the message: `'ERR'`, `'MOVED'`. */
  get code(): string {
    return this.message.split(' ', 1)[0]!
  }
}

export interface Wire {
  readonly socket: Socket
  /** Sends one command. Bulk strings are decoded as UTF-8. Rejects with a {@link ReplyError} if that is the reply. */
  send(...command: Argument[]): Promise<Expected>
  /** Sends one command. Bulk strings are Buffers. */
  sendRaw(...command: Argument[]): Promise<Expected>
  /** Sends commands at once. Error replies are among the results. */
  pipeline(commands: readonly (readonly Argument[])[]): Promise<Expected[]>
  /** Ends the connection. Pending commands reject. */
  close(): void
}

interface Pending {
  readonly settle: (reply: Reply<Buffer>) => void
  readonly reject: (error: Error) => void
}

/** Connects to a server on this machine. */
export async function connectWire(port: number): Promise<Wire> {
  const socket = connect(port, HOST)
  await once(socket, 'connect')
  const pending: Pending[] = []
  let buffer: Buffer = Buffer.alloc(0)
  let failure: Error | undefined

  const fail = (error: Error) => {
    failure ??= error
    socket.destroy()
    for (const { reject } of pending.splice(0)) reject(failure)
  }
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('the connection is closed')))
  socket.on('data', (chunk) => {
    buffer = buffer.length === 0 ? chunk : Buffer.concat([buffer, chunk])
    let at = 0
    for (;;) {
      const parsed = parse(buffer, at)
      if (parsed === undefined) break
      at = parsed.end
      pending.shift()?.settle(parsed.reply)
    }
    buffer = buffer.subarray(at)
  })

  const ask = (command: readonly Argument[]) =>
    new Promise<Reply<Buffer>>((settle, reject) => {
      if (failure) return reject(failure)
      pending.push({ settle, reject })
      socket.write(encode(command))
    })
  const orThrow = <Bulk>(reply: Reply<Bulk>) => {
    if (reply instanceof ReplyError) throw reply
    return reply
  }
  return {
    socket,
    send: async (...command) => orThrow(decoded(await ask(command))),
    sendRaw: async (...command) => orThrow(await ask(command)),
    async pipeline(commands) {
      socket.cork()
      const replies = commands.map(ask)
      socket.uncork()
      return (await Promise.all(replies)).map(decoded)
    },
    close: () => void socket.destroy(),
  }
}

/** Connects, sends one command and closes. */
export async function sendOnce(port: number, ...command: Argument[]): Promise<Expected> {
  const wire = await connectWire(port)
  try {
    return await wire.send(...command)
  } finally {
    wire.close()
  }
}

/** The bytes of a command: an array of bulk strings. */
export function encode(command: readonly Argument[]): Buffer {
  const parts = command.flatMap((argument) => {
    const bytes = argument instanceof Uint8Array ? argument : Buffer.from(String(argument))
    return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')]
  })
  return Buffer.concat([Buffer.from(`*${command.length}\r\n`), ...parts])
}

interface Parsed {
  readonly reply: Reply<Buffer>
  /** Where the next reply starts. */
  readonly end: number
}

/** Parses the reply that starts at `at`. Undefined if its end has not come yet. */
export function parse(buffer: Buffer, at: number): Parsed | undefined {
  const lineEnd = buffer.indexOf('\r\n', at)
  if (lineEnd === -1) return undefined
  const type = String.fromCharCode(buffer[at]!)
  const line = buffer.toString('utf8', at + 1, lineEnd)
  const start = lineEnd + 2
  switch (type) {
    case '+':
      return { reply: line, end: start }
    case '-':
      return { reply: new ReplyError(line), end: start }
    case ':':
      return { reply: Number.isSafeInteger(Number(line)) ? Number(line) : BigInt(line), end: start }
    case '$': {
      if (line === '-1') return { reply: null, end: start }
      const end = start + Number(line)
      return end + 2 > buffer.length ? undefined : { reply: buffer.subarray(start, end), end: end + 2 }
    }
    case '*':
      return line === '-1' ? { reply: null, end: start } : parseItems(buffer, start, Number(line))
    default:
      throw new Error(`not a reply of RESP2: ${type}${line}`)
  }
}

function parseItems(buffer: Buffer, start: number, count: number): Parsed | undefined {
  const items: Reply<Buffer>[] = []
  let end = start
  while (items.length < count) {
    const item = parse(buffer, end)
    if (item === undefined) return undefined
    items.push(item.reply)
    end = item.end
  }
  return { reply: items, end }
}

function decoded(reply: Reply<Buffer>): Reply<string> {
  if (Buffer.isBuffer(reply)) return reply.toString()
  return Array.isArray(reply) ? reply.map(decoded) : reply
}
