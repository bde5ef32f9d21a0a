// Random values of every type, and arrays on buffers of every kind.
import { runInNewContext } from 'node:vm'

/** Numbers at the limits of a type or a range. */
export const NUMBERS: readonly number[] = [
  ...[
    0,
    -0,
    1,
    2,
    3,
    15,
    16,
    60,
    64,
    255,
    256,
    257,
    1_000,
    65_536,
    2 ** 22 - 2,
    2 ** 22 - 1,
    2 ** 22,
    2 ** 28,
  ],
  ...[
    2 ** 28 + 1,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 32 - 1,
    2 ** 32,
    2 ** 40,
    2 ** 53 - 1,
    2 ** 53,
    2 ** 63,
    2 ** 64,
  ],
  ...[0.5, 1.5, 1e-300, Number.MIN_VALUE, Number.MAX_VALUE, 1e300, Number.NaN, Infinity],
].flatMap((value) => [value, -value])

type ArrayType = new (buffer: ArrayBuffer, byteOffset: number, length?: number) => ArrayBufferView
const ARRAYS: readonly ArrayType[] = [
  ...[Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array],
  ...[Float32Array, Float64Array, BigInt64Array, BigUint64Array, DataView],
]

// Every supported Node.js has these, but TypeScript's library types do not.
const Resizable = ArrayBuffer as unknown as new (
  bytes: number,
  options: { maxByteLength: number },
) => ArrayBuffer & { resize(bytes: number): void }
const Growable = SharedArrayBuffer as unknown as new (
  bytes: number,
  options: { maxByteLength: number },
) => ArrayBuffer & { grow(bytes: number): void }

const { Memory } = (globalThis as unknown as { WebAssembly: { Memory: MemoryType } }).WebAssembly
type MemoryType = new (pages: {
  initial: number
  maximum: number
}) => { buffer: ArrayBuffer; grow(pages: number): void }

export class Values {
  readonly #next: () => number

  constructor(next: () => number) {
    this.#next = next
  }

  chance(likely: number): boolean {
    return this.#next() < likely
  }

  below(count: number): number {
    return Math.floor(this.#next() * count)
  }

  of<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!
  }

  word(): number {
    return (this.#next() * 2 ** 32) | 0
  }

  any(): unknown {
    if (this.chance(0.4)) return this.array(this.of(ARRAYS), this.below(40))
    if (this.chance(0.4)) return this.of(NUMBERS)
    return this.of(ODD)()
  }

  /** An array of about that length. Its buffer may be larger, shared, resizable or detached. */
  array(type: ArrayType, length: number): ArrayBufferView {
    const width = 'BYTES_PER_ELEMENT' in type ? (type.BYTES_PER_ELEMENT as number) : 1
    const offset = this.chance(0.5) ? 0 : 8 * this.below(4)
    const bytes = offset + width * length
    switch (this.below(9)) {
      case 0:
        return new type(new SharedArrayBuffer(bytes) as unknown as ArrayBuffer, offset, length)
      case 1:
        return new type(new Resizable(bytes, { maxByteLength: bytes + 4_096 }), offset)
      case 2: {
        const buffer = new Resizable(bytes, { maxByteLength: bytes + 64 })
        const array = new type(buffer, offset, this.chance(0.5) ? length : undefined)
        buffer.resize(this.below(bytes + 64)) // perhaps shorter than the array
        return array
      }
      case 3: {
        const buffer = new Growable(bytes, { maxByteLength: bytes + 64 })
        const array = new type(buffer, offset)
        buffer.grow(bytes + 8 * this.below(8))
        return array
      }
      case 4: {
        const array = new type(new ArrayBuffer(bytes), offset, length)
        structuredClone(array.buffer, { transfer: [array.buffer as ArrayBuffer] }) // detached
        return array
      }
      case 5: {
        const memory = new Memory({ initial: 1, maximum: 2 })
        const array = new type(memory.buffer, offset, Math.min(length, Math.floor((65_536 - offset) / width)))
        if (this.chance(0.5)) memory.grow(1) // detaches it
        return array
      }
      default:
        return new type(new ArrayBuffer(bytes), offset, length)
    }
  }
}

class Longer extends Int32Array {
  override get length(): number {
    return 2 ** 30
  }
}

const thrower = () => {
  throw new Error('code of the caller was run')
}
const ODD: readonly (() => unknown)[] = [
  () => undefined,
  () => null,
  () => true,
  () => false,
  () => '',
  () => 'text',
  () => '7',
  () => Symbol('s'),
  () => 1n,
  () => 2n ** 70n,
  () => ({}),
  () => [],
  () => [1, 2, 3, 4],
  () => ({ length: 4, 0: 1 }),
  () => Object.create(null),
  () => Object.freeze({}),
  () => thrower,
  () => class {},
  () => new Map(),
  () => new Date(Number.NaN),
  () => /x/,
  () => new Error('an error'),
  () => Promise.resolve(),
  () => new WeakMap(),
  () => new Number(3),
  () => new ArrayBuffer(64),
  () => new SharedArrayBuffer(64),
  () => Buffer.alloc(16),
  () => Buffer.from('text'),
  () => new Longer(4),
  () => new Proxy(new Int32Array(8), {}),
  () => new Proxy({}, { get: thrower, getPrototypeOf: thrower }),
  () => ({ valueOf: thrower, toString: thrower, [Symbol.toPrimitive]: thrower }),
  () => Object.setPrototypeOf(new Int32Array(8), null),
  () => Object.setPrototypeOf(new Int32Array(8), Float64Array.prototype),
  () => Object.setPrototypeOf({}, Int32Array.prototype),
  () => runInNewContext('new Int32Array(8)'),
  () => globalThis,
]
