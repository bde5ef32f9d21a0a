/**
 * IP addresses, parsed and written by ipaddr.js. All spellings of an address have the same words, so lists
 * and keys compare words and never text. An IPv6 address that stands for an IPv4 address (`::ffff:1.2.3.4`,
 * and the deprecated `::1.2.3.4`) is that IPv4 address. A NAT64 address (`64:ff9b::/96`) is not: a list that
 * has `127.0.0.1` must not match `64:ff9b::7f00:1`.
 */
import { createRequire } from 'node:module'
import { lazily } from '../../core/lazily.js'

const require = createRequire(import.meta.url)
const ipaddr = lazily(() => require('ipaddr.js') as typeof import('ipaddr.js'))

/** How the address is numbered: one word of 32 bits for IPv4, four for IPv6, the most significant first. */
export type Words = readonly number[]

/** The length of the longest address: an IPv6 address that ends in an IPv4 address. */
const MOST_CHARACTERS = 45

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
  const bytes = words.flatMap((word) => [word >>> 24, (word >>> 16) & 255, (word >>> 8) & 255, word & 255])
  return words.length === 1
    ? new (ipaddr().IPv4)(bytes).toString()
    : new (ipaddr().IPv6)(bytes).toRFC5952String()
}

/**
 * Parses the address that stands in `text` from `start` to `end`, without its zone (`%eth0`). Returns
 * undefined for anything else. Refuses leading zeros in IPv4 addresses: some programs read them as octal.
 */
export function parseAddress(text: string, start = 0, end = text.length): Address | undefined {
  const first = text.slice(start, Math.min(end, start + MOST_CHARACTERS + 1))
  const zone = first.indexOf('%')
  const hasZone = zone >= 0 && zone < end - start - 1
  const part = hasZone ? first.slice(0, zone) : first
  if (part.length > MOST_CHARACTERS) return undefined
  if (!part.includes(':')) {
    if (hasZone || !ipaddr().IPv4.isValidFourPartDecimal(part)) return undefined
    return new Address(wordsOf(ipaddr().IPv4.parse(part)))
  }
  if (!IPV6.test(part) || !ipaddr().IPv6.isValid(part)) return undefined
  const words = wordsOf(ipaddr().IPv6.parse(part))
  return new Address(isIPv4InIPv6(words) ? words.slice(3) : words)
}

/** What ipaddr.js takes beyond this: zones, groups of more than four digits, and leading zeros in octets. */
const IPV6 = /^(?:[\da-f]{0,4}:){2,8}(?:[\da-f]{0,4}|(?:(?:0|[1-9]\d{0,2})(?:\.(?!$)|$)){4})$/i

function wordsOf(address: { toByteArray(): number[] }): Words {
  const bytes = address.toByteArray()
  const words: number[] = []
  for (let i = 0; i < bytes.length; i += 4) {
    words.push(((bytes[i]! << 24) | (bytes[i + 1]! << 16) | (bytes[i + 2]! << 8) | bytes[i + 3]!) >>> 0)
  }
  return words
}

/** `::` and `::1` are no IPv4 addresses, and neither is what follows them up to `::ffff`. */
function isIPv4InIPv6([first, second, third, last]: Words): boolean {
  return first === 0 && second === 0 && (third === 0xffff || (third === 0 && last! > 0xffff))
}
