// YAML whose every value knows its line, so that errors have a place.
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import { OptionError } from '../../options/option.js'

/** A file, as text. */
export interface ConfigFile {
  readonly path: string
  readonly text: string
}

/** An error in a file of limits: one line that begins with the file and the line. */
export class ConfigError extends OptionError {}

/** The key whose value is the fields of another object. */
const MERGE = '<<'
/** Aliases may repeat what they name: so many values are read, at most. */
const MOST_VALUES = 1_000_000

/** A value of a file, and where it is. */
export class Value {
  readonly #source: Source
  readonly #node: Node | null
  /** Its name in the file, such as `descriptors[0].rate_limit`. */
  readonly name: string

  private constructor(source: Source, node: Node | null, name: string) {
    this.#source = source
    this.#node = source.resolved(node, name)
    this.name = name
  }

  /** @throws ConfigError for a text that is no YAML */
  static of(file: ConfigFile): Value {
    const source = new Source(file)
    return new Value(source, source.root, '')
  }

  /** The file and the line. */
  get place(): string {
    return this.#source.placeOf(this.#node)
  }

  get isNull(): boolean {
    return this.#node === null || (isScalar(this.#node) && this.#node.value === null)
  }

  fail(expected: string, got = this.#shown()): never {
    const name = this.name === '' ? '' : `${this.name}: `
    throw new ConfigError(`${this.place}: ${name}expected ${expected}, got ${got}`)
  }

  /** The fields of an object, without those that are null. @throws ConfigError for a field that is not known */
  fields<Name extends string>(
    known: readonly Name[],
    hints: Readonly<Record<string, string>> = {},
  ): Partial<Record<Name, Value>> {
    if (!isMap(this.#node)) this.fail(`an object with ${known.join(', ')}`)
    const fields: Partial<Record<Name, Value>> = {}
    const merged: Value[] = []
    for (const { key, value } of this.#node.items) {
      const name = new Value(this.#source, key as Node | null, this.name)
      const word = name.word()
      const path = this.name === '' ? word : `${this.name}.${word}`
      const field = new Value(this.#source, value as Node | null, path)
      if (word === MERGE) merged.push(...(isSeq(field.#node) ? field.items() : [field]))
      else if (!known.includes(word as Name))
        name.fail(hints[word] ?? `one of ${known.join(', ')}`, `the field ${JSON.stringify(word)}`)
      else if (!field.isNull) fields[word as Name] = field
    }
    for (const each of merged)
      for (const [name, field] of Object.entries(each.fields(known, hints)) as [Name, Value][])
        fields[name] ??= field
    return fields
  }

  items(): Value[] {
    if (!isSeq(this.#node)) this.fail('a list')
    return this.#node.items.map(
      (item, i) => new Value(this.#source, item as Node | null, `${this.name}[${i}]`),
    )
  }

  /** A text that is not empty. Numbers and `true` are taken as they are written. */
  word(): string {
    const node = this.#node
    const text = isScalar(node) && node.value !== null ? (node.source ?? String(node.value)) : ''
    return text === '' ? this.fail('a text that is not empty') : text
  }

  flag(): boolean {
    const value = isScalar(this.#node) ? this.#node.value : undefined
    return typeof value === 'boolean' ? value : this.fail('true or false')
  }

  integer(least: number, most: number): number {
    const value = isScalar(this.#node) ? this.#node.value : undefined
    const isOne = typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most
    return isOne ? value : this.fail(`a whole number from ${least} to ${most}`)
  }

  #shown(): string {
    if (isMap(this.#node)) return 'an object'
    if (isSeq(this.#node)) return 'a list'
    return isScalar(this.#node) ? JSON.stringify(this.#node.value) : 'nothing'
  }
}

/** A document that is read. */
class Source {
  readonly #path: string
  readonly #lines = new LineCounter()
  readonly #document: Document
  #read = 0

  constructor({ path, text }: ConfigFile) {
    this.#path = path
    this.#document = parseDocument(text, { lineCounter: this.#lines, prettyErrors: false })
    const [error] = this.#document.errors
    if (error !== undefined) throw new ConfigError(`${this.#at(error.pos[0])}: ${error.message}`)
  }

  get root(): Node | null {
    return this.#document.contents as Node | null
  }

  resolved(node: Node | null, name: string): Node | null {
    const own = isAlias(node) ? ((node.resolve(this.#document) as Node | undefined) ?? null) : node
    if (++this.#read > MOST_VALUES)
      throw new ConfigError(
        `${this.placeOf(node)}: ${name}: expected at most ${MOST_VALUES} values in a file, with those of aliases`,
      )
    return own
  }

  placeOf(node: Node | null): string {
    return this.#at(node?.range?.[0] ?? 0)
  }

  #at(offset: number): string {
    return `${this.#path}:${this.#lines.linePos(offset).line}`
  }
}
