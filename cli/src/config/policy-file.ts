import { createWriteStream } from 'node:fs'
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { StringDecoder } from 'node:string_decoder'
import { decompressed, unreadable } from '../input.js'
import { type Entry, PolicyReader } from './policy-lines.js'

const CHUNK_BYTES = 1 << 17
const WHAT = 'a file of policies'

type State = { readonly size: number; readonly mtimeMs: number }
type Opened = { readonly file: FileHandle; readonly state: State }

/** A file of policies, plain or gzipped, that can be read more than once. */
export class PolicyFile {
  /** The name of the file in messages. */
  readonly name: string
  readonly #file: FileHandle
  readonly #state: State

  constructor(name: string, { file, state }: Opened) {
    this.name = name
    this.#file = file
    this.#state = state
  }

  /**
   * The entries of the file, in order. Calls `onPart` with the part of the file that has been read, 0 to 1.
   * @throws UsageError if it cannot be read
   */
  async *entries(onPart: (part: number) => void): AsyncGenerator<Entry> {
    const { size } = this.#state
    let read = 0
    try {
      const bytes = await decompressed(chunksOf(this.#file), (chunk) => {
        read += chunk.length
        onPart(Math.min(1, read / size))
      })
      const decoder = new StringDecoder('utf8')
      const reader = new PolicyReader()
      for await (const chunk of bytes) yield* reader.read(decoder.write(chunk))
      yield* reader.read(decoder.end())
      yield* reader.end()
    } catch (error) {
      throw unreadable(error, this.name, WHAT) ?? error
    }
  }

  /** Whether the file is another one than when it was opened. */
  async hasChanged(): Promise<boolean> {
    const { size, mtimeMs } = await this.#file.stat()
    return size !== this.#state.size || mtimeMs !== this.#state.mtimeMs
  }
}

/**
 * Opens a file of policies for `act`. What can be read once only, standard input (`-`) or a pipe, is copied to a
 * temporary file.
 * @throws UsageError if it cannot be read
 */
export async function withPolicyFile<T>(
  path: string,
  { stdin, signal }: { stdin: NodeJS.ReadableStream; signal: AbortSignal },
  act: (file: PolicyFile) => Promise<T>,
): Promise<T> {
  const name = path === '-' ? 'standard input' : path
  const ends: (() => Promise<unknown>)[] = []
  try {
    const source = path === '-' ? stdin : await openedFile(path, ends)
    const found = 'file' in source ? source : await copied(source, signal, ends)
    return await act(new PolicyFile(name, found))
  } catch (error) {
    const { syscall } = error as NodeJS.ErrnoException
    throw (syscall === 'open' ? unreadable(error, name, WHAT) : undefined) ?? error
  } finally {
    for (const end of ends.reverse()) await end()
  }
}

/** A file, or the bytes of what is none, such as a pipe. */
async function openedFile(
  path: string,
  ends: (() => Promise<unknown>)[],
): Promise<Opened | AsyncIterable<Buffer>> {
  const file = await open(path, 'r')
  ends.push(() => file.close())
  const state = await file.stat()
  return state.isFile() || state.isDirectory() ? { file, state } : chunksOf(file, null)
}

async function copied(
  source: AsyncIterable<Buffer | string>,
  signal: AbortSignal,
  ends: (() => Promise<unknown>)[],
): Promise<Opened> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-'))
  ends.push(() => rm(folder, { recursive: true }))
  const path = join(folder, 'policies')
  await pipeline(source, createWriteStream(path, { mode: 0o600 }), { signal })
  const file = await open(path, 'r')
  ends.push(() => file.close())
  return { file, state: await file.stat() }
}

/** The bytes of a file from its start, or from where it stands. */
async function* chunksOf(file: FileHandle, start: number | null = 0): AsyncGenerator<Buffer> {
  for (let at = start; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, at)
    if (bytesRead === 0) return
    if (at !== null) at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}
