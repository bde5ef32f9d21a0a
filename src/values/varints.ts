// Whole numbers up to 2^53 - 1 in as few bytes as they need: seven bits in each, the lowest first. All but the last byte
// of a number have their highest bit set.

export class VarintWriter {
  readonly #bytes: number[] = []

  write(value: number): void {
    let left = value
    while (left >= 128) {
      this.#bytes.push((left % 128) + 128)
      left = Math.floor(left / 128)
    }
    this.#bytes.push(left)
  }

  get bytes(): Uint8Array {
    return Uint8Array.from(this.#bytes)
  }
}

export class VarintReader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  /** The next number. NaN if the bytes end before it does, or if it is too large. */
  read(): number {
    let value = 0
    let scale = 1
    for (;;) {
      const byte = this.#bytes[this.#at++]
      if (byte === undefined) return Number.NaN
      value += (byte % 128) * scale
      if (byte < 128) return Number.isSafeInteger(value) ? value : Number.NaN
      scale *= 128
      if (scale > Number.MAX_SAFE_INTEGER) return Number.NaN
    }
  }
}
