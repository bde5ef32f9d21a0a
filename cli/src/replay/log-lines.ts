import { createReadStream, fstatSync, openSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { decompressed, unreadable } from '../input.js'

/**
 * Yields the lines of a log; `-` reads `stdin`. Decompresses the log if its first bytes are those of gzip.
 * Calls `onBytes` with the number of bytes read and the total (undefined if unknown). Truncates lines at
 * 65,536 characters, because a file that is not a log may be a single line.
 * @throws UsageError if the log cannot be read
 */
export async function* logLines(
  path: string,
  stdin: NodeJS.ReadableStream,
  onBytes: (read: number, all: number | undefined) => void,
): AsyncGenerator<string> {
  const name = path === '-' ? 'standard input' : path
  try {
    const { source, bytes } = path === '-' ? { source: stdin, bytes: undefined } : open(path)
    let read = 0
    const unpacked = await decompressed(source, (chunk) => {
      read += chunk.length
      onBytes(read, bytes)
    })
    yield* split(unpacked)
  } catch (error) {
    throw unreadable(error, name, 'an access log') ?? error
  }
}

/** Several times the longest line that servers write: they limit requests to about 8 KiB. */
const LONGEST_LINE = 65_536
const BYTE_ORDER_MARK = '\ufeff'

async function* split(bytes: Readable): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8')
  let isFirst = true
  const line = (text: string) => {
    const start = isFirst && text.startsWith(BYTE_ORDER_MARK) ? 1 : 0
    isFirst = false
    return text.slice(start, Math.min(text.endsWith('\r') ? text.length - 1 : text.length, LONGEST_LINE))
  }
  let rest = ''
  for await (const chunk of bytes) {
    const texts = (rest + decoder.write(chunk)).split('\n')
    rest = texts.pop()!
    // One character more than the limit is enough: `line` cuts it off, with all that follows.
    if (rest.length > LONGEST_LINE) rest = rest.slice(0, LONGEST_LINE + 1)
    for (const text of texts) yield line(text)
  }
  rest += decoder.end()
  if (rest !== '') yield line(rest)
}

function open(path: string): { source: Readable; bytes: number | undefined } {
  const fd = openSync(path, 'r')
  const stat = fstatSync(fd)
  const source = createReadStream(path, { fd, highWaterMark: 1 << 18 })
  return { source, bytes: stat.isFile() ? stat.size : undefined }
}
