import { PassThrough, pipeline, Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { UsageError } from './terminal.js'

/** The error of an input that cannot be read; undefined for other errors. `what` is what its path should name. */
export function unreadable(error: unknown, name: string, what: string): UsageError | undefined {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === undefined) return undefined
  const reasons: Record<string, string> = {
    ENOENT: `no such file; expected the path of ${what}, or - for standard input`,
    EISDIR: `is a directory; expected the path of ${what}`,
    EACCES: 'no permission to read this file',
    Z: 'damaged or truncated gzip data',
  }
  const why = reasons[code] ?? (code.startsWith('Z_') ? reasons.Z : message)
  return new UsageError(`${name}: ${why}`, { cause: error })
}

/** The bytes of `source`, decompressed if they begin with gzip's magic number. */
export async function decompressed(
  source: AsyncIterable<Buffer | string>,
  onChunk: (chunk: Buffer) => void,
): Promise<Readable> {
  const chunks = source[Symbol.asyncIterator]()
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
