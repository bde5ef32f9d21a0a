// The format of policies in a file. Each line is a JSON object: one policy as `{"key": "user:1", "policy": {...}}`, or
// the policies of several keys as `{"user:1": {...}, "user:2": {...}}`. Such an object of several keys may also be on
// several lines, as large as it likes. A policy is the present form or the plain one.
import { MillraceError } from 'millrace'
import type { Policy } from 'millrace/config/memory'
import { checkPolicyKey, parsePolicy } from 'millrace/internal'
import { printable, shortened } from '../terminal.js'
import { ObjectMembers } from './object-members.js'

/** A policy of a file, or what is wrong there. */
export type Entry =
  | { readonly line: number; readonly key: string; readonly policy: Policy; readonly error?: undefined }
  | { readonly line: number; readonly error: string }

interface Fields {
  readonly key: unknown
  readonly policy?: unknown
}

/** The most characters of a line, or of a policy in an object of many lines. A policy of 16 rules has 5,000. */
const LONGEST = 1 << 20
const BYTE_ORDER_MARK = '\ufeff'
const FIELDS = ['key', 'policy', 'version']
const FORM =
  '{"key": "user:1", "policy": {"limit": 100, "window": "1m"}} or {"user:1": {"limit": 100, "window": "1m"}}'

/** Reads text in parts. Errors do not end it: it goes on at the next line, or the next member. */
export class PolicyReader {
  #line = 1
  /** The line so far. */
  #rest = ''
  /** The object on several lines that is being read. */
  #object: ObjectMembers | undefined
  /** Whether the rest of the line is left out: it is too long, and has been told. */
  #skips = false
  #isFirst = true
  /** Whether the line has no part yet. */
  #isAtStart = true

  /** Reads more text, and returns the entries that end in it. */
  read(text: string): Entry[] {
    const entries: Entry[] = []
    let from = this.#isFirst && text.startsWith(BYTE_ORDER_MARK) ? 1 : 0
    if (text !== '') this.#isFirst = false
    for (;;) {
      const end = text.indexOf('\n', from)
      this.#add(text.slice(from, end < 0 ? text.length : end), entries)
      if (end < 0) return entries
      this.#endLine(entries)
      from = end + 1
    }
  }

  /** Ends the text, and returns the last entries. */
  end(): Entry[] {
    const entries: Entry[] = []
    this.#endLine(entries)
    if (this.#object !== undefined) this.#leaveObject(entries)
    return entries
  }

  /** Adds a part of a line. */
  #add(part: string, entries: Entry[]): void {
    if (this.#skips || part === '') return
    if (this.#object !== undefined && this.#isAtStart && this.#object.isBrokenBy(part))
      this.#leaveObject(entries)
    this.#isAtStart = false
    if (this.#object !== undefined) {
      this.#rest = this.#addToObject(part, entries)
      return
    }
    this.#rest += part
    if (this.#rest.length <= LONGEST) return
    const text = this.#rest
    this.#rest = ''
    if (/^\s*\{/.test(text)) {
      this.#object = new ObjectMembers(LONGEST)
      this.#rest = this.#addToObject(text, entries)
    } else {
      entries.push({ line: this.#line, error: `expected ${FORM}, got ${shown(text)}` })
      this.#skips = true
    }
  }

  #endLine(entries: Entry[]): void {
    if (this.#object !== undefined) this.#addToObject('\n', entries)
    const text = this.#rest
    this.#rest = ''
    if (text.trim() !== '') this.#readLine(text, entries)
    this.#skips = false
    this.#isAtStart = true
    this.#line++
  }

  #readLine(text: string, entries: Entry[]): void {
    const line = this.#line
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch (error) {
      if (isObjectStart(text)) this.#beginObject(`${text}\n`, entries)
      else entries.push({ line, error: notJson(text, error) })
      return
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      entries.push({ line, error: `expected ${FORM}, got ${shown(text)}` })
    else if ('key' in value && typeof value.key === 'string')
      entries.push(fieldsOf(line, value.key, value as Fields))
    else this.#beginObject(text, entries) // finds keys that are there twice, which JSON.parse merges
  }

  #beginObject(text: string, entries: Entry[]): void {
    this.#object = new ObjectMembers(LONGEST)
    this.#addToObject(text, entries)
  }

  /** Returns what follows the object, if it ends in this part. */
  #addToObject(part: string, entries: Entry[]): string {
    try {
      const { members, end } = this.#object!.read(part, this.#line)
      for (const { text, line } of members) entries.push(memberOf(line, text))
      if (this.#object!.isWhole) this.#object = undefined
      return part.slice(end)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      entries.push({ line: this.#line, error: `expected ${FORM}, got ${error.message}` })
      this.#object = undefined
      this.#skips = true
      return ''
    }
  }

  /** Goes on with lines where an object lacks its end. */
  #leaveObject(entries: Entry[]): void {
    const { text, line } = this.#object!.unfinished
    entries.push({ line, error: `expected the end of this object, got ${shown(text)}` })
    this.#object = undefined
  }
}

/** Whether a line that is no JSON begins an object of several keys on several lines. */
function isObjectStart(text: string): boolean {
  if (!/^\s*\{/.test(text) || isFieldStart(text)) return false
  const members = new ObjectMembers(LONGEST)
  members.read(text, 0)
  return !members.isWhole && !members.isInString
}

/** Whether a line begins as one policy, which is on one line. */
const isFieldStart = (text: string): boolean => /^\s*\{\s*"(?:key|policy|version)"\s*:\s*(?:"|\d)/.test(text)

function memberOf(line: number, text: string): Entry {
  let pairs: [string, unknown][]
  try {
    pairs = Object.entries(JSON.parse(`{${text}}`))
  } catch (error) {
    return { line, error: notJson(text, error) }
  }
  const [pair] = pairs
  return pair === undefined
    ? { line, error: 'expected a key and its policy, got nothing' }
    : entryOf(line, ...pair)
}

/** One policy in the form of fields. The version is that of another store, or of another time: it is left out. */
function fieldsOf(line: number, key: string, fields: Fields): Entry {
  const other = Object.keys(fields).find((name) => !FIELDS.includes(name))
  if (other === undefined) return entryOf(line, key, fields.policy)
  return { line, error: `expected only ${FIELDS.join(', ')}, got ${JSON.stringify(other)}` }
}

function entryOf(line: number, key: string, document: unknown): Entry {
  try {
    checkPolicyKey(key)
    return { line, key, policy: parsePolicy(document, printable(key)).policy }
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    return { line, error: error.message }
  }
}

function notJson(text: string, error: unknown): string {
  const why = (error as Error).message.replace(
    / in JSON at position \d+.*| is not valid JSON.*|, ?"?\.\.\..*/s,
    '',
  )
  return `expected JSON, got ${shown(text)} (${printable(why)})`
}

const shown = (text: string): string => shortened(printable(text.trim().slice(0, 100)), 60)
