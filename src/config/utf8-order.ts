/** Compares strings by their UTF-8 bytes, which is the order of their code points. For `sort`. */
export function byUtf8(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
