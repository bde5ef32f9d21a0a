// Policies in JSON. JSON.parse alone would not do: it takes a key twice, gives no line, and sorts keys like '42'.
import type { PolicyDocument } from '../../policy.js'
import { type ParsedText, TextFault, type TextFormat } from './text-format.js'

/** A member of an object: offsets in the text. */
interface Member {
  readonly name: string
  /** Where its name begins. */
  readonly at: number
  /** Where its value begins. */
  readonly valueAt: number
  /** Behind its value. */
  readonly end: number
}

const SPACE = /[ \t\n\r]*/y
const STRING = /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y
const LITERAL = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)(?!\w)/y
const DEEPEST = 50

export const jsonText: TextFormat = {
  name: 'JSON',

  parse(text: string): ParsedText {
    const members = new Scanner(text).root().members
    const documents = new Map(
      members.map(({ name, valueAt, end }) => [name, JSON.parse(text.slice(valueAt, end))]),
    )
    return { documents, placeOf: (key, names) => placeOf(text, members, [key, ...names]) }
  },

  edit(text: string, changes: ReadonlyMap<string, PolicyDocument | undefined>): string {
    const { members, end } = new Scanner(text).root()
    const known = new Set(members.map(({ name }) => name))
    const added = [...changes].filter(([key, document]) => document !== undefined && !known.has(key))
    const first = members[0]
    const start = text.indexOf('{') + 1
    const head = first === undefined ? '\n  ' : text.slice(start, first.at)
    const gap = members.length > 1 ? text.slice(first!.end, members[1]!.at) : `,${head}`
    let body = ''
    for (const [i, { name, at, valueAt, end }] of members.entries()) {
      const document = changes.get(name)
      if (document === undefined && changes.has(name)) continue
      const value = document === undefined ? text.slice(valueAt, end) : lineOf(document)
      const before = i === 0 || body === '' ? head : text.slice(members[i - 1]!.end, at)
      body += before + text.slice(at, valueAt) + value
    }
    for (const [key, document] of added)
      body += `${body === '' ? head : gap}${JSON.stringify(key)}: ${lineOf(document!)}`
    const tail = first === undefined ? '\n' : text.slice(members.at(-1)!.end, end)
    return text.slice(0, start) + body + (body === '' ? '' : tail) + text.slice(end)
  },
}

/** A document on one line. Strings of JSON contain no line breaks. */
const lineOf = (document: PolicyDocument): string =>
  JSON.stringify(document, undefined, 1).replace(/\n\s*/g, ' ')

function placeOf(text: string, members: readonly Member[], [name, ...rest]: readonly string[]): number {
  const member = members.find((each) => each.name === name)
  if (member === undefined) return 0
  const inside = rest.length === 0 ? [] : new Scanner(text).membersAt(member.valueAt)
  return inside.some((each) => each.name === rest[0]) ? placeOf(text, inside, rest) : member.at
}

/** Reads a text once, by RFC 8259; a name may be in an object only once. */
class Scanner {
  readonly #text: string
  #at = 0
  #depth = 0

  constructor(text: string) {
    this.#text = text
  }

  /** The members of the text's object, and where its closing brace is. */
  root(): { members: Member[]; end: number } {
    this.#skip(SPACE)
    if (this.#text[this.#at] !== '{') throw this.#fault('an object of policies by their keys')
    const members = this.#object()
    const end = this.#at - 1
    this.#skip(SPACE)
    if (this.#at < this.#text.length) throw this.#fault('nothing after the object')
    return { members, end }
  }

  /** What the object or array there has; the names of an array are its indices. */
  membersAt(at: number): Member[] {
    this.#at = at
    if (this.#text[at] === '{') return this.#object()
    return this.#text[at] === '[' ? this.#array() : []
  }

  #object(): Member[] {
    const names = new Set<string>()
    return this.#list('}', () => {
      const at = this.#at
      if (!this.#skip(STRING)) throw this.#fault('a name in double quotes')
      const name: string = JSON.parse(this.#text.slice(at, this.#at))
      if (names.has(name)) throw new TextFault(at, name, 'each name only once')
      names.add(name)
      this.#skip(SPACE)
      if (this.#text[this.#at] !== ':') throw this.#fault('a colon')
      this.#at++
      this.#skip(SPACE)
      return { name, at, ...this.#value() }
    })
  }

  #array(): Member[] {
    let index = 0
    return this.#list(']', () => ({ name: String(index++), at: this.#at, ...this.#value() }))
  }

  #list(close: string, member: () => Member): Member[] {
    if (++this.#depth > DEEPEST) throw this.#fault(`at most ${DEEPEST} levels`)
    const members: Member[] = []
    this.#at++
    this.#skip(SPACE)
    if (this.#text[this.#at] !== close) {
      for (;;) {
        members.push(member())
        this.#skip(SPACE)
        if (this.#text[this.#at] !== ',') break
        this.#at++
        this.#skip(SPACE)
      }
      if (this.#text[this.#at] !== close) throw this.#fault(`a comma or "${close}"`)
    }
    this.#at++
    this.#depth--
    return members
  }

  #value(): { valueAt: number; end: number } {
    const valueAt = this.#at
    const char = this.#text[valueAt]
    if (char === '{') this.#object()
    else if (char === '[') this.#array()
    else if (!this.#skip(char === '"' ? STRING : LITERAL)) throw this.#fault('a value of JSON')
    return { valueAt, end: this.#at }
  }

  #skip(what: RegExp): boolean {
    what.lastIndex = this.#at
    if (!what.test(this.#text)) return false
    this.#at = what.lastIndex
    return true
  }

  #fault(expected: string): TextFault {
    const found = this.#text.slice(this.#at, this.#at + 20).split(/[\r\n]/)[0]
    return new TextFault(this.#at, this.#at < this.#text.length ? found : 'the end of the file', expected)
  }
}
