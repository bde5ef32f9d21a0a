// Messages of MongoDB's wire protocol: OP_MSG, and OP_QUERY for the first hello of a connection.
// https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/
import { type Document, deserialize, serialize } from 'bson'

const OP_REPLY = 1
const OP_QUERY = 2004
const OP_MSG = 2013
const HEADER = 16
const CHECKSUM_PRESENT = 1
const MORE_TO_COME = 2
const EXHAUST_ALLOWED = 1 << 16
/** Of the flags, a receiver must know the first 16. */
const MUST_KNOW = 0xffff

export interface Request {
  readonly id: number
  readonly command: Document
  readonly isQuery: boolean
  /** The sender wants no reply. */
  readonly isOneWay: boolean
  /** The sender takes one reply after another. */
  readonly isStream: boolean
}

/** Values keep their BSON types, so that they go back as they have come. */
const bsonOptions = { promoteValues: false, promoteLongs: false, bsonRegExp: true } as const
const read = (bytes: Buffer): Document => deserialize(bytes, bsonOptions)

/** Cuts a stream of bytes into messages. */
export class Framer {
  #bytes = Buffer.alloc(0)

  push(chunk: Buffer): Buffer[] {
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    const messages: Buffer[] = []
    while (this.#bytes.length >= 4) {
      const length = this.#bytes.readInt32LE(0)
      if (this.#bytes.length < length) break
      messages.push(this.#bytes.subarray(0, length))
      this.#bytes = this.#bytes.subarray(length)
    }
    return messages
  }
}

export function parseMessage(message: Buffer): Request {
  const [id, opCode] = [message.readInt32LE(4), message.readInt32LE(12)]
  if (opCode === OP_MSG) return { id, isQuery: false, ...parseBody(message) }
  if (opCode !== OP_QUERY) throw new Error(`the stand-in does not know the opcode ${opCode}`)
  const nameEnd = message.indexOf(0, HEADER + 4)
  const database = message.toString('utf8', HEADER + 4, nameEnd).replace(/\.\$cmd$/, '')
  const command = { ...read(message.subarray(nameEnd + 9)), $db: database }
  return { id, command, isQuery: true, isOneWay: false, isStream: false }
}

function parseBody(message: Buffer): Pick<Request, 'command' | 'isOneWay' | 'isStream'> {
  const flags = message.readUInt32LE(HEADER)
  if ((flags & MUST_KNOW & ~(CHECKSUM_PRESENT | MORE_TO_COME)) !== 0)
    throw new Error(`the stand-in does not know the flags ${flags}`)
  const end = message.length - (flags & CHECKSUM_PRESENT ? 4 : 0)
  const command: Document = {}
  for (let at = HEADER + 4; at < end; ) {
    const kind = message[at]!
    const size = message.readInt32LE(at + 1)
    const section = message.subarray(at + 1, at + 1 + size)
    if (kind === 0) Object.assign(command, read(section))
    else if (kind === 1) Object.assign(command, parseSequence(section))
    else throw new Error(`the stand-in does not know sections of kind ${kind}`)
    at += 1 + size
  }
  return { command, isOneWay: (flags & MORE_TO_COME) !== 0, isStream: (flags & EXHAUST_ALLOWED) !== 0 }
}

function parseSequence(section: Buffer): Document {
  const nameEnd = section.indexOf(0, 4)
  const documents: Document[] = []
  for (let at = nameEnd + 1; at < section.length; at += section.readInt32LE(at))
    documents.push(read(section.subarray(at, at + section.readInt32LE(at))))
  return { [section.toString('utf8', 4, nameEnd)]: documents }
}

export function replyTo({ id, isQuery }: Request, reply: Document, hasMore = false): Buffer {
  const document = serialize(reply, { ignoreUndefined: true })
  // OP_REPLY has flags, a cursor, a start and a count; OP_MSG has flags and the kind of the section
  const before = Buffer.alloc(isQuery ? HEADER + 20 : HEADER + 5)
  before.writeInt32LE(before.length + document.length, 0)
  before.writeInt32LE(id, 8)
  before.writeInt32LE(isQuery ? OP_REPLY : OP_MSG, 12)
  if (isQuery) before.writeInt32LE(1, HEADER + 16)
  else if (hasMore) before.writeInt32LE(MORE_TO_COME, HEADER)
  return Buffer.concat([before, document])
}
