import { createReadStream, fstatSync, openSync } from 'node:fs'
import { PassThrough, pipeline, Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { createGunzip } from 'node:zlib'
import { UsageError } from '../terminal.js'

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
    const { code, message } = error as NodeJS.ErrnoException
    const why =
      code === undefined ? undefined : (REASONS[code] ?? (code.startsWith('Z_') ? REASONS.Z : message))
    if (why === undefined) throw error
    throw new UsageError(`${name}: ${why}`, { cause: error })
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

const REASONS: Record<string, string> = {
  ENOENT: 'no such file; expected the path of an access log, or - for standard input',
  EISDIR: 'is a directory; expected the path of an access log',
  EACCES: 'no permission to read this file',
  Z: 'damaged or truncated gzip data',
}

function open(path: string): { source: Readable; bytes: number | undefined } {
  const fd = openSync(path, 'r')
  const stat = fstatSync(fd)
  const source = createReadStream(path, { fd, highWaterMark: 1 << 18 })
  return { source, bytes: stat.isFile() ? stat.size : undefined }
}

/** The bytes of `source`, decompressed if they begin with gzip's magic number. */
async function decompressed(
  source: NodeJS.ReadableStream,
  onChunk: (chunk: Buffer) => void,
): Promise<Readable> {
  const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer | string>
  let start = Buffer.alloc(0)
  let ended = false
  while (start.length < 2 && !ended) {
    const { value, done } = await chunks.next()
    ended = done === true
    if (!ended) start = Buffer.concat([start, Buffer.from(value)])
  }
  async function* all() {
    onChunk(start)
    if (start.length > 0) yield start
    for (;;) {
      const { value, done } = await chunks.next()
      if (done) return
      const chunk = Buffer.from(value)
      onChunk(chunk)
      yield chunk
    }
  }
  const isZipped = start[0] === 0x1f && start[1] === 0x8b
  const unpacked = isZipped ? createGunzip() : new PassThrough()
  // The reader of `unpacked` gets the errors: the pipeline destroys it with them.
  pipeline(Readable.from(all()), unpacked, () => {})
  return unpacked
}
