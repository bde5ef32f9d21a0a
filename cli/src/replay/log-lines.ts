import { createReadStream, fstatSync, openSync } from 'node:fs'
import { PassThrough, pipeline, Readable } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { createGunzip } from 'node:zlib'
import { UsageError } from '../terminal.js'

/**
 * The lines of a log, unpacked if its first bytes are gzip's, whatever its name; `-` reads `stdin`. `onBytes` hears how
 * many bytes have been read of how many there are (`undefined`: nobody knows). Of a line longer than 65,536 characters,
 * such as a file that is no log may be as a whole, what is beyond is dropped.
 * @throws UsageError where it can't be read
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
    const unpacked = await unzipped(source, (chunk) => {
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

/** Several times the longest line that servers write: what they take as a request is limited to 8 KiB or so. */
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
    // Once over, a line stays over: whatever is added to it is cut off again.
    if (rest.length > LONGEST_LINE) rest = rest.slice(0, LONGEST_LINE + 1)
    for (const text of texts) yield line(text)
  }
  rest += decoder.end()
  if (rest !== '') yield line(rest)
}

const REASONS: Record<string, string> = {
  ENOENT: 'there is no such file (give the path of an access log, or - for standard input)',
  EISDIR: 'this is a folder (give the path of an access log)',
  EACCES: 'not allowed to read this file',
  Z: 'damaged or cut off: it begins like gzip, but can’t be unpacked to its end',
}

function open(path: string): { source: Readable; bytes: number | undefined } {
  const fd = openSync(path, 'r')
  const stat = fstatSync(fd)
  const source = createReadStream(path, { fd, highWaterMark: 1 << 18 })
  return { source, bytes: stat.isFile() ? stat.size : undefined }
}

/** The same bytes, through gunzip where they begin with its magic. */
async function unzipped(source: NodeJS.ReadableStream, onChunk: (chunk: Buffer) => void): Promise<Readable> {
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
  // Errors are read off `unpacked`, which the pipeline destroys with them.
  pipeline(Readable.from(all()), unpacked, () => {})
  return unpacked
}
