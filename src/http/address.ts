/**
 * IP addresses as numbers. All spellings of an address have the same words, so lists and keys compare words
 * and never text. An IPv6 address that stands for an IPv4 address (`::ffff:1.2.3.4`, and the deprecated
 * `::1.2.3.4`) is that IPv4 address. A NAT64 address (`64:ff9b::/96`) is not: a list that has `127.0.0.1`
 * must not match `64:ff9b::7f00:1`.
 *
 * The parser reads a part of a string in place. A substring would keep the whole header in memory.
 */

/** How the address is numbered: one word of 32 bits for IPv4, four for IPv6, the most significant first. */
export type Words = readonly number[]

const ZERO = 48
const DOT = 46
const COLON = 58
const PERCENT = 37
const GROUPS = 8

export class Address {
  readonly words: Words
  #text: string | undefined

  constructor(words: Words) {
    this.words = words
  }

  get isIPv4(): boolean {
    return this.words.length === 1
  }

  /** The one spelling that Millrace writes: `192.0.2.1`, or lower case and compressed, as RFC 5952 has it. */
  toString(): string {
    this.#text ??= textOf(this.words)
    return this.#text
  }

  /** The network of an IPv6 address: `2001:db8:1:200::/56`. */
  networkOf(bits: number): string {
    return `${textOf(masked(this.words, bits))}/${bits}`
  }
}

/** The first address of the network. */
export function masked(words: Words, bits: number): Words {
  return words.map((word, i) => (word & maskOf(bits - 32 * i)) >>> 0)
}

/** A word whose first `bits` bits are set. */
export function maskOf(bits: number): number {
  if (bits <= 0) return 0
  return bits >= 32 ? 0xffffffff : ~(0xffffffff >>> bits) >>> 0
}

export function textOf(words: Words): string {
  const [first = 0] = words
  if (words.length === 1)
    return `${first >>> 24}.${(first >>> 16) & 255}.${(first >>> 8) & 255}.${first & 255}`
  const [start, after] = longestZeros(words)
  let text = ''
  for (let i = 0; i < GROUPS; i++) {
    if (i === start) {
      text += '::'
      i = after - 1
    } else {
      text += i === 0 || i === after ? groupOf(words, i).toString(16) : `:${groupOf(words, i).toString(16)}`
    }
  }
  return text
}

/** One of the eight groups of 16 bits. */
function groupOf(words: Words, i: number): number {
  const word = words[i >>> 1]!
  return i % 2 === 0 ? word >>> 16 : word & 0xffff
}

/** Where the longest run of two or more groups of zeros starts and ends, the first of several. -1 for none. */
function longestZeros(words: Words): [start: number, after: number] {
  let start = -1
  let [longest, run] = [1, 0]
  for (let i = 0; i < GROUPS; i++) {
    run = groupOf(words, i) === 0 ? run + 1 : 0
    if (run <= longest) continue
    longest = run
    start = i + 1 - run
  }
  return [start, start + longest]
}

/**
 * Parses the address that stands in `text` from `start` to `end`, without its zone (`%eth0`). Returns
 * undefined for anything else.
 */
export function parseAddress(text: string, start = 0, end = text.length): Address | undefined {
  const word = parseIPv4(text, start, end)
  return word >= 0 ? new Address([word]) : parseIPv6(text, start, end)
}

/**
 * Returns the word of an IPv4 address, or -1. Refuses leading zeros: some programs read them as octal.
 */
export function parseIPv4(text: string, start: number, end: number): number {
  let word = 0
  let at = start
  for (let octets = 1; ; octets++) {
    const first = at
    let octet = 0
    for (; at < end; at++) {
      const digit = text.charCodeAt(at) - ZERO
      if (digit < 0 || digit > 9) break
      octet = 10 * octet + digit
      if (octet > 255) return -1
    }
    if (at === first || (at > first + 1 && text.charCodeAt(first) === ZERO)) return -1
    word = 256 * word + octet
    if (octets === 4) return at === end ? word : -1
    if (at === end || text.charCodeAt(at) !== DOT) return -1
    at++
  }
}

/** Parses the 1 to 8 groups of an IPv6 address. Its last two may be an IPv4 address. */
function parseIPv6(text: string, start: number, zonedEnd: number): Address | undefined {
  const end = endBeforeZone(text, start, zonedEnd)
  const groups: number[] = []
  let gap = -1 // the number of groups before '::'
  let at = start
  if (start < end && text.charCodeAt(start) === COLON) {
    if (start + 1 === end || text.charCodeAt(start + 1) !== COLON) return undefined
    gap = 0
    at += 2
  }
  while (at < end) {
    if (groups.length === GROUPS) return undefined
    if (text.charCodeAt(at) === COLON) {
      if (gap >= 0) return undefined
      gap = groups.length
      at++
      continue
    }
    const first = at
    let group = 0
    for (; at < end && at < first + 4; at++) {
      const digit = hexDigit(text.charCodeAt(at))
      if (digit < 0) break
      group = 16 * group + digit
    }
    if (at < end && text.charCodeAt(at) === DOT) {
      const word = parseIPv4(text, first, end)
      if (word < 0) return undefined
      groups.push(word >>> 16, word & 0xffff)
      break
    }
    if (at === first) return undefined
    groups.push(group)
    if (at === end) break
    if (text.charCodeAt(at) !== COLON || at + 1 === end) return undefined
    at++
  }
  return addressOf(groups, gap)
}

/** The address of these groups, with zeros in place of the gap. */
function addressOf(groups: number[], gap: number): Address | undefined {
  const missing = GROUPS - groups.length
  if (gap < 0 ? missing !== 0 : missing < 1) return undefined
  for (let i = 0; i < missing; i++) groups.splice(gap, 0, 0)
  const words = [0, 2, 4, 6].map((i) => ((groups[i]! << 16) | groups[i + 1]!) >>> 0)
  return new Address(isIPv4InIPv6(words) ? words.slice(3) : words)
}

/** `::` and `::1` are no IPv4 addresses, and neither is what follows them up to `::ffff`. */
function isIPv4InIPv6([first, second, third, last]: Words): boolean {
  return first === 0 && second === 0 && (third === 0xffff || (third === 0 && last! > 0xffff))
}

/** The index of a `%` that a zone follows, or `end`. */
function endBeforeZone(text: string, start: number, end: number): number {
  for (let at = start; at < end - 1; at++) if (text.charCodeAt(at) === PERCENT) return at
  return end
}

/** The value of a hexadecimal digit by its character code, or -1. */
function hexDigit(code: number): number {
  if (code >= ZERO && code <= 57) return code - ZERO
  const lower = code | 32
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}
