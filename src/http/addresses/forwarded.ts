/**
 * Reads the addresses that proxies have put into a header, from the right. Each proxy appends an element for
 * the client or proxy that it got the request from. So what stands to the left of a trusted proxy's element
 * may be anything, and is never looked at to find that element.
 */
import { type Address, parseAddress } from './address.js'

/** The headers that proxies name a client in. */
export type ForwardedHeader = 'x-forwarded-for' | 'forwarded'

/** The longest element that is read: an address has 45 characters, and Forwarded has host names too. */
const MAX_ELEMENT = 512

const [TAB, SPACE, QUOTE, COMMA, BACKSLASH] = [9, 32, 34, 44, 92]

/** The elements of one header, from the right. */
export class ForwardedElements {
  readonly #text: string
  readonly #parse: (text: string, start: number, end: number) => Address | undefined
  #end: number
  #left: number

  /** @param most the most elements to read, with empty ones */
  constructor(header: ForwardedHeader, text: string, most: number) {
    this.#text = text
    this.#parse = header === 'forwarded' ? parseForwarded : parseNode
    this.#end = text.length
    this.#left = most
  }

  /** Returns the address of the next element to the left, or undefined if it has none or there is no more. */
  previous(): Address | undefined {
    const text = this.#text
    while (this.#end >= 0 && this.#left-- > 0) {
      const start = startOfElement(text, this.#end)
      if (start < 0) return undefined
      const [first, end] = trimmed(text, start, this.#end)
      this.#end = start - 1
      if (first < end) return this.#parse(text, first, end)
    }
    return undefined
  }
}

/**
 * Finds where the element begins that ends before `end`. Returns -1 if it is too long or if a quoted string
 * in it has no beginning.
 */
function startOfElement(text: string, end: number): number {
  const least = Math.max(0, end - MAX_ELEMENT)
  let isQuoted = false
  for (let at = end - 1; at >= least; at--) {
    const code = text.charCodeAt(at)
    if (code === QUOTE && !isEscaped(text, at, least)) isQuoted = !isQuoted
    else if (code === COMMA && !isQuoted) return at + 1
  }
  return isQuoted || least > 0 ? -1 : 0
}

/** Whether an odd number of backslashes stands before the character. */
function isEscaped(text: string, at: number, least: number): boolean {
  let first = at
  while (first > least && text.charCodeAt(first - 1) === BACKSLASH) first--
  return (at - first) % 2 === 1
}

function trimmed(text: string, start: number, end: number): [number, number] {
  let [first, after] = [start, end]
  while (first < after && isBlank(text.charCodeAt(first))) first++
  while (first < after && isBlank(text.charCodeAt(after - 1))) after--
  return [first, after]
}

const isBlank = (code: number): boolean => code === SPACE || code === TAB

/** A pair of an element of Forwarded, such as `for="[2001:db8::1]:4711"`, and the `;` after it. */
const PAIR = /[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^";\\ \t]*))[ \t]*)?(?:;|$)/y

/** Reads `for` of an element of Forwarded (RFC 7239). Undefined if the element is not well-formed. */
function parseForwarded(text: string, start: number, end: number): Address | undefined {
  const element = text.slice(start, end)
  let node: string | undefined
  PAIR.lastIndex = 0
  while (PAIR.lastIndex < element.length) {
    const pair = PAIR.exec(element)
    if (pair === null) return undefined
    const [, name, quoted, token = ''] = pair
    if (name?.toLowerCase() !== 'for') continue
    if (node !== undefined) return undefined
    node = quoted ?? token
  }
  return node === undefined ? undefined : parseNode(node, 0, node.length)
}

/** An address with a port, or in brackets, or both. */
const WITH_PORT = /^(?:\[([^\]]*)\]|([\d.]*))(?::(?:\d{1,5}|_[\w.-]+))?$/

/** Undefined for what is no address, such as `unknown` and `_hidden`. */
function parseNode(text: string, start: number, end: number): Address | undefined {
  return parseAddress(text, start, end) ?? parseWithPort(text.slice(start, end))
}

function parseWithPort(node: string): Address | undefined {
  const [, bracketed, bare = ''] = WITH_PORT.exec(node) ?? []
  return parseAddress(bracketed ?? bare)
}
