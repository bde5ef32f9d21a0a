/** Compares strings by their UTF-8 bytes, which is the order of their code points. For `sort`. */
export function byUtf8(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Surrogates stand for characters after all that are one UTF-16 unit. */
const rank = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit)

/** The lowest string after all that begin with `prefix`; undefined if there is none. */
export function afterPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0)!)
  while (points.at(-1) === 0x10_ffff) points.pop()
  const last = points.pop()
  if (last === undefined) return undefined
  const next = last === 0xd7ff ? 0xe000 : last + 1 // surrogates are no characters
  return String.fromCodePoint(...points, next)
}
