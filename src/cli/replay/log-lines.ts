import { createReadStream, fstatSync, openSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { PassThrough, pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { UsageError } from '../terminal.js'

/**
 * The lines of a log, unpacked if its first bytes are gzip's, whatever its name; `-` reads `stdin`. `onBytes` hears how
 * many bytes have been read of how many there are (`undefined`: nobody knows).
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
    const lines = createInterface({ input: unpacked, crlfDelay: Number.POSITIVE_INFINITY })
    // An error of the stream does not reach the lines' loop by itself.
    const failure = new Promise<never>((_, reject) => unpacked.on('error', reject))
    failure.catch(() => lines.close())
    for await (const line of lines) yield line
    if (unpacked.errored) await failure
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const why =
      code === undefined ? undefined : (REASONS[code] ?? (code.startsWith('Z_') ? REASONS.Z : message))
    if (why === undefined) throw error
    throw new UsageError(`${name}: ${why}`, { cause: error })
  }
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
