/** HalfSipHash-c-d with 64 bits of output as its authors define it, byte by byte, in 32-bit arithmetic. */
export function halfSipHash(
  c: number,
  d: number,
  k0: number,
  k1: number,
  message: Uint8Array,
): [number, number] {
  const rotate = (x: number, n: number) => (x << n) | (x >>> (32 - n))
  let [v0, v1, v2, v3] = [k0, k1 ^ 0xee, 0x6c796765 ^ k0, 0x74656462 ^ k1]
  const rounds = (n: number) => {
    for (let i = 0; i < n; i++) {
      v0 = (v0 + v1) | 0
      v1 = rotate(v1, 5) ^ v0
      v0 = rotate(v0, 16)
      v2 = (v2 + v3) | 0
      v3 = rotate(v3, 8) ^ v2
      v0 = (v0 + v3) | 0
      v3 = rotate(v3, 7) ^ v0
      v2 = (v2 + v1) | 0
      v1 = rotate(v1, 13) ^ v2
      v2 = rotate(v2, 16)
    }
  }
  const padded = new Uint8Array(4 * (Math.floor(message.length / 4) + 1))
  padded.set(message)
  padded[padded.length - 1] = message.length & 255
  for (const word of new Int32Array(padded.buffer)) {
    v3 ^= word
    rounds(c)
    v0 ^= word
  }
  v2 ^= 0xee
  rounds(d)
  const lo = v1 ^ v3
  v1 ^= 0xdd
  rounds(d)
  return [lo, v1 ^ v3]
}

/** The documented fingerprint of a key: the last 7 bits of its hash are 0. */
export function fingerprint(k0: number, k1: number, key: string): [lo: number, hi: number] {
  const isWide = [...key].some((c) => c > '\u00ff')
  const [lo, hi] = isWide
    ? halfSipHash(1, 3, k0 ^ 0x77696465, k1, Buffer.from(key, 'utf16le'))
    : halfSipHash(1, 3, k0, k1, Buffer.from(key, 'latin1'))
  return [lo || 1, hi & ~0x7f]
}
