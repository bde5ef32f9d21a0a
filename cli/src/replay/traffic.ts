import { grouped, type Progress, printable, shortened, UsageError } from '../terminal.js'
import { parseLine } from './access-log.js'
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

/**
 * Reads a log into memory. Requests with the same key belong to one client.
 * @throws UsageError if the log cannot be read, or no line has a known format
 */
export async function readTraffic(
  file: string,
  key: Key,
  stdin: NodeJS.ReadableStream,
  progress: Progress,
): Promise<{ traffic: Traffic; unparsed: Unparsed; withoutUser: number }> {
  const clients: string[] = []
  const numbers = new Map<string, number>()
  const atMs: number[] = []
  const client: number[] = []
  const unparsed: Unparsed = { count: 0, examples: [] }
  let withoutUser = 0
  let line = 0
  const lines = logLines(file, stdin, (read, all) => {
    const part = all === undefined ? '' : ` (${Math.floor((100 * read) / Math.max(all, 1))} %)`
    progress.show(() => `reading: ${grouped(line)} lines${part}`)
  })
  for await (const text of lines) {
    line++
    if (text === '') continue
    const request = parseLine(text)
    if (request === undefined) {
      unparsed.count++
      if (unparsed.examples.length < EXAMPLES) unparsed.examples.push({ line, text })
      continue
    }
    if (!hasUser(request)) withoutUser++
    const name = key.of(request)
    let number = numbers.get(name)
    if (number === undefined) {
      const copy = Buffer.from(name).toString() // `name` is a slice that would keep its chunk of the log in memory
      number = clients.push(copy) - 1
      numbers.set(copy, number)
    }
    atMs.push(request.atMs)
    client.push(number)
  }
  if (atMs.length === 0 && unparsed.count > 0) {
    const first = shortened(printable(unparsed.examples[0]!.text.slice(0, 120)), 120)
    throw new UsageError(
      `none of the ${grouped(unparsed.count)} lines is in the Common or Combined Log Format; the first is: ${first}`,
    )
  }
  return { traffic: { clients, atMs, client }, unparsed, withoutUser }
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
