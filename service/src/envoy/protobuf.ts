// The wire format of Protocol Buffers, as far as the contract needs it.
// https://protobuf.dev/programming-guides/encoding/

/** A message that is not what its contract says. */
export class WireError extends Error {}

export const VARINT = 0
const FIXED64 = 1
export const BYTES = 2
const FIXED32 = 5

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
/** Shorter texts are read byte by byte, if they are ASCII: a call of the decoder takes longer. */
const SHORT = 24
const LONGEST_VARINT = 10
const MOST_FIELD = 2 ** 29 - 1

/** Reads a message field by field. All lengths are checked against the end of the message. */
export class Reader {
  readonly #bytes: Uint8Array
  #at: number
  readonly #end: number

  constructor(bytes: Uint8Array, from = 0, end = bytes.length) {
    this.#bytes = bytes
    this.#at = from
    this.#end = end
  }

  /** The number of the next field and its type, as `number * 8 + type`; 0 at the end. */
  tag(): number {
    if (this.#at >= this.#end) return 0
    const tag = this.varint()
    const field = Math.floor(tag / 8)
    if (field < 1 || field > MOST_FIELD) throw new WireError('a field without a number')
    return tag
  }

  /** An unsigned number. Above 2^53 it is not exact, and above 2^64 it is an error. */
  varint(): number {
    let value = 0
    let scale = 1
    for (let i = 0; i < LONGEST_VARINT; i++) {
      if (this.#at >= this.#end) throw new WireError('a number that is cut off')
      const byte = this.#bytes[this.#at++]!
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
      scale *= 128
    }
    throw new WireError('a number of more than 64 bits')
  }

  text(): string {
    const from = this.#at + this.#lengthAfter()
    const bytes = this.#bytes
    const end = this.#at
    if (end - from <= SHORT) {
      let text = ''
      let i = from
      while (i < end && bytes[i]! < 0x80) text += String.fromCharCode(bytes[i++]!)
      if (i === end) return text
    }
    try {
      return utf8.decode(bytes.subarray(from, end))
    } catch {
      throw new WireError('a text that is not UTF-8')
    }
  }

  message(): Reader {
    const from = this.#at + this.#lengthAfter()
    return new Reader(this.#bytes, from, this.#at)
  }

  /** Passes over a field of a type that is not known. */
  skip(tag: number): void {
    const type = tag % 8
    if (type === VARINT) this.varint()
    else if (type === BYTES) this.#lengthAfter()
    else if (type === FIXED64) this.#pass(8)
    else if (type === FIXED32) this.#pass(4)
    else throw new WireError('a field of a type that is not known')
  }

  /** Passes over a length and as many bytes. Returns how many bytes the length took. */
  #lengthAfter(): number {
    const start = this.#at
    const length = this.varint()
    const own = this.#at - start
    this.#pass(length)
    return own
  }

  #pass(length: number): void {
    if (length > this.#end - this.#at) throw new WireError('a field that is longer than its message')
    this.#at += length
  }
}

/** Writes a message into a buffer that grows. Fields of 0 and empty texts are left out, as proto3 does. */
export class Writer {
  #buffer = Buffer.allocUnsafe(256)
  #at = 0

  uint(field: number, value: number): void {
    if (value === 0) return
    this.#reserve(16)
    this.#varint(field * 8 + VARINT)
    this.#varint(value)
  }

  text(field: number, value: string): void {
    if (value === '') return
    const length = Buffer.byteLength(value)
    this.#reserve(length + 16)
    this.#varint(field * 8 + BYTES)
    this.#varint(length)
    this.#at += this.#buffer.write(value, this.#at)
  }

  /** A message in this one. Its length stands before it in one byte, or in five where it is long. */
  message(field: number, write: () => void): void {
    this.#reserve(16)
    this.#varint(field * 8 + BYTES)
    const at = this.#at++
    write()
    const length = this.#at - at - 1
    if (length < 0x80) {
      this.#buffer[at] = length
      return
    }
    this.#reserve(4)
    this.#buffer.copyWithin(at + 5, at + 1, this.#at)
    for (let i = 0, rest = length; i < 5; i++, rest = Math.floor(rest / 128))
      this.#buffer[at + i] = (rest % 128) | (i < 4 ? 0x80 : 0)
    this.#at += 4
  }

  finish(): Buffer {
    return this.#buffer.subarray(0, this.#at)
  }

  #varint(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      this.#buffer[this.#at++] = (rest % 128) | 0x80
      rest = Math.floor(rest / 128)
    }
    this.#buffer[this.#at++] = rest
  }

  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(2 * this.#buffer.length, this.#at + bytes))
    this.#buffer.copy(larger, 0, 0, this.#at)
    this.#buffer = larger
  }
}
