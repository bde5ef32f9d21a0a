/** A sequence of numbers from 0 up to 1 that depends only on the seed, which is not 0. */
export function random(seed: number): () => number {
  let state = seed
  return () => {
    state ^= state << 13 // xorshift32 (G. Marsaglia, Xorshift RNGs, 2003)
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
}
