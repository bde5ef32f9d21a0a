/**
 * Reads lists and dictionaries of structured fields (RFC 9651), as far as the `RateLimit` fields of the IETF
 * drafts use them: every bare item with its parameters, and no inner lists. RFC 9651, section 4.2: a field
 * that does not parse as a whole is ignored as a whole.
 */

/** The value of an item or a parameter. A byte sequence and a display string keep their text. */
export type BareItem = number | string | boolean

/** An item with its parameters. */
export interface Item {
  readonly value: BareItem
  readonly params: ReadonlyMap<string, BareItem>
}

/** The bare items, and how each is read. The first that matches counts: a decimal before an integer. */
const ITEMS: readonly (readonly [RegExp, (text: string) => BareItem])[] = [
  [/-?\d{1,12}\.\d{1,3}(?![\d.])/y, Number],
  [/-?\d{1,15}(?![\d.])/y, Number],
  [/"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"/y, (text) => text.slice(1, -1).replace(/\\(.)/g, '$1')],
  [/[A-Za-z*][!#$%&'*+\-.^_`|~\w:/]*/y, (text) => text],
  [/\?[01]/y, (text) => text === '?1'],
  [/:(?:[A-Za-z\d+/]{4})*(?:[A-Za-z\d+/]{2}(?:==)?|[A-Za-z\d+/]{3}=?)?:/y, (text) => text],
  [/@-?\d{1,15}(?![\d.])/y, (text) => Number(text.slice(1))],
  [/%"(?:[\x20-\x21\x23-\x24\x26-\x7e]|%[\da-f]{2})*"/y, (text) => text],
]
const KEY = /[a-z*][a-z\d_\-.*]*/y
const SPACES = / */y
const BLANKS = /[ \t]*/y

/** Is called with each member. The key of an item of a list is `''`. */
type Add = (key: string, item: Item) => void

/** The items of a list, or undefined if the text is none, or has an inner list. */
export function parseList(text: string): Item[] | undefined {
  const items: Item[] = []
  const isList = new FieldReader(text).members(false, (_, item) => items.push(item))
  return isList ? items : undefined
}

/** The members of a dictionary, or undefined if the text is none, or has an inner list. */
export function parseDictionary(text: string): Map<string, Item> | undefined {
  const members = new Map<string, Item>()
  const isDictionary = new FieldReader(text).members(true, (key, item) => {
    members.delete(key) // the last one counts, and stands where it was written
    members.set(key, item)
  })
  return isDictionary ? members : undefined
}

class FieldReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  /** Reads all members, separated by commas. False: the text is malformed. */
  members(withKeys: boolean, add: Add): boolean {
    this.#match(SPACES)
    if (this.#isAtEnd) return true
    for (;;) {
      const key = withKeys ? this.#match(KEY) : ''
      if (key === undefined) return false
      const hasItem = !withKeys || this.#skip('=')
      const value = hasItem ? this.#bareItem() : true // a key alone is true
      const params = value === undefined ? undefined : this.#params()
      if (value === undefined || params === undefined) return false
      add(key, { value, params })
      this.#match(BLANKS)
      if (this.#isAtEnd) return true
      if (!this.#skip(',')) return false
      this.#match(BLANKS)
      if (this.#isAtEnd) return false // a comma at the end
    }
  }

  #params(): Map<string, BareItem> | undefined {
    const params = new Map<string, BareItem>()
    while (this.#skip(';')) {
      this.#match(SPACES)
      const key = this.#match(KEY)
      const value = key !== undefined && this.#skip('=') ? this.#bareItem() : true
      if (key === undefined || value === undefined) return undefined
      params.set(key, value)
    }
    return params
  }

  #bareItem(): BareItem | undefined {
    for (const [pattern, read] of ITEMS) {
      const text = this.#match(pattern)
      if (text !== undefined) return read(text)
    }
    return undefined
  }

  /** Only spaces may follow the last member. */
  get #isAtEnd(): boolean {
    return /^ *$/.test(this.#text.slice(this.#at))
  }

  #skip(character: string): boolean {
    if (this.#text[this.#at] !== character) return false
    this.#at++
    return true
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const [found] = pattern.exec(this.#text) ?? []
    this.#at += found?.length ?? 0
    return found
  }
}
