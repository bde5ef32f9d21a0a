import { grouped, type Progress, printable, shortened, UsageError } from '../terminal.js'
import { type FormatName, guessed, KNOWN_FORMATS, LINES_TO_GUESS, type Parse, parserOf } from './formats.js'
import { type NamedFields, OTHER } from './json-log.js'
import { hasUser, type Key } from './keys.js'
import { logLines } from './log-lines.js'

/** Requests in the order of the log: for each its time in milliseconds and the index of its client. */
export interface Traffic {
  readonly clients: readonly string[]
  readonly atMs: readonly number[]
  readonly client: readonly number[]
}

export interface Unparsed {
  count: number
  /** The first few, each with its line number. */
  examples: { line: number; text: string }[]
}

const EXAMPLES = 2

/** How to read a log. */
export interface Reading extends NamedFields {
  readonly key: Key
  /** Undefined: the first lines tell. */
  readonly format?: FormatName | undefined
}

/** A log as it was read. */
export interface ReadLog {
  readonly traffic: Traffic
  readonly unparsed: Unparsed
  readonly withoutUser: number
  /** Lines that are of the format, and have no request. */
  readonly others: number
  /** Undefined for an empty log whose format was to be guessed. */
  readonly format: FormatName | undefined
}

/**
 * Reads a log into memory. Requests with the same key belong to one client.
 * @throws UsageError if the log cannot be read, or no line has a request in a known format
 */
export async function readTraffic(
  file: string,
  reading: Reading,
  stdin: NodeJS.ReadableStream,
  progress: Progress,
): Promise<ReadLog> {
  const collected = new Collector(reading)
  let line = 0
  const lines = logLines(file, stdin, (read, all) => {
    const part = all === undefined ? '' : ` (${Math.floor((100 * read) / Math.max(all, 1))} %)`
    progress.show(() => `reading: ${grouped(line)} lines${part}`)
  })
  for await (const text of lines) {
    line++
    if (text !== '') collected.take({ line, text })
  }
  return collected.end()
}

interface Line {
  readonly line: number
  readonly text: string
}

/** Takes the lines of a log. Until its format is known, it keeps some of them. */
class Collector {
  readonly #reading: Reading
  readonly #clients: string[] = []
  readonly #numbers = new Map<string, number>()
  readonly #atMs: number[] = []
  readonly #client: number[] = []
  readonly #unparsed: Unparsed = { count: 0, examples: [] }
  #withoutUser = 0
  #others = 0
  #format: FormatName | undefined
  #parse: Parse | undefined
  #early: Line[] = []

  constructor(reading: Reading) {
    this.#reading = reading
    this.#use(reading.format)
  }

  take(line: Line): void {
    if (this.#parse !== undefined) {
      this.#add(this.#parse, line)
      return
    }
    this.#early.push(line)
    if (this.#early.length === LINES_TO_GUESS) this.#guess()
  }

  /** @throws UsageError if there are lines, and none has a request */
  end(): ReadLog {
    if (this.#parse === undefined) this.#guess()
    const unparsed = this.#unparsed
    if (this.#atMs.length === 0 && unparsed.count + this.#others > 0) throw this.#error()
    return {
      traffic: { clients: this.#clients, atMs: this.#atMs, client: this.#client },
      ...{ unparsed, withoutUser: this.#withoutUser, others: this.#others, format: this.#format },
    }
  }

  #use(format: FormatName | undefined): void {
    this.#format = format
    this.#parse = format === undefined ? undefined : parserOf(format, this.#reading)
  }

  #guess(): void {
    const lines = this.#early
    this.#early = []
    this.#use(
      guessed(
        lines.map(({ text }) => text),
        this.#reading,
      ),
    )
    const parse = this.#parse ?? (() => undefined)
    for (const line of lines) this.#add(parse, line)
  }

  #add(parse: Parse, { line, text }: Line): void {
    const request = parse(text)
    if (request === OTHER) {
      this.#others++
      return
    }
    if (request === undefined) {
      const { examples } = this.#unparsed
      this.#unparsed.count++
      if (examples.length < EXAMPLES) examples.push({ line, text })
      return
    }
    if (!hasUser(request)) this.#withoutUser++
    const name = this.#reading.key.of(request)
    let number = this.#numbers.get(name)
    if (number === undefined) {
      const copy = Buffer.from(name).toString() // `name` is a slice that would keep its chunk of the log in memory
      number = this.#clients.push(copy) - 1
      this.#numbers.set(copy, number)
    }
    this.#atMs.push(request.atMs)
    this.#client.push(number)
  }

  #error(): UsageError {
    const { count, examples } = this.#unparsed
    const { format, timeField, keyField } = this.#reading
    if (count === 0) return new UsageError(`none of the ${grouped(this.#others)} lines has a request`)
    const first = shortened(printable(examples[0]!.text.slice(0, 120)), 120)
    const named = [timeField ?? [], keyField ?? []].flat().map((field) => JSON.stringify(field))
    const all = format === undefined ? KNOWN_FORMATS : `the format ${format}`
    const expected = named.length === 0 ? all : `JSON with a time and a client, by ${named.join(' and ')}`
    return new UsageError(`none of the ${grouped(count)} lines is in ${expected}; the first is: ${first}`)
  }
}

/** Groups requests by client and keeps their order: client c has those from starts[c] up to starts[c + 1]. */
export function byClient({ clients, client }: Traffic, order: Uint32Array) {
  const starts = new Uint32Array(clients.length + 1)
  for (const number of client) starts[number + 1]!++
  for (let i = 1; i < starts.length; i++) starts[i]! += starts[i - 1]!
  const next = starts.slice()
  const requests = new Uint32Array(order.length)
  for (const request of order) requests[next[client[request]!]!++] = request
  return { requests, starts }
}

/** The indices of the requests by time; requests of the same time keep their order. */
export function inOrder({ atMs }: Traffic): Uint32Array {
  return Uint32Array.from(atMs, (_, i) => i).sort((a, b) => atMs[a]! - atMs[b]! || a - b)
}
