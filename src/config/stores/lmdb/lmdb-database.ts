// Opens LMDB databases, each once a thread.
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  type Stats,
  statSync,
} from 'node:fs'
import { dirname, extname, join, resolve } from 'node:path'
import { type Database, open, type RootDatabase, type RootDatabaseOptions } from 'lmdb'
import { MillraceError } from '../../../core/errors.js'
import { faultOf } from '../../lmdb-file.js'

/** Each process and thread that reads takes a slot of 64 bytes in the lock file. */
const MAX_READERS = 1_024

/** A database file. All stores of a thread on the same file share it. */
export interface LmdbDatabase {
  readonly root: RootDatabase
  /** The JSON texts of policies, in the order of the UTF-8 bytes of their keys. */
  readonly policies: Database<string, string>
  /** The log of changes, see `lmdb-changes.ts`. */
  readonly changes: Database<unknown, number>
  readonly file: string
  /** The identity of the file, also if another one takes its path. */
  readonly id: string
  users: number
}

/**
 * LMDB's own file for the same path would be another lock holder in this thread: its open waits for the write lock,
 * which the first one gives back only after a callback on this thread.
 */
const opened = new Map<string, LmdbDatabase>()

/** @throws MillraceError `ERR_MILLRACE_CONFIG_STORE` */
export function acquire(path: string, mapSize: number | undefined): LmdbDatabase {
  const isFile = isFilePath(path)
  const file = isFile ? resolve(path) : join(resolve(path), 'data.mdb')
  const id = idOf(file)
  const shared = id === undefined ? undefined : opened.get(id)
  if (shared !== undefined) {
    shared.users++
    return shared
  }
  const database = openFile(path, isFile, file, mapSize)
  opened.set(database.id, database)
  return database
}

/** Closes the database after its last user, whose writes must have ended. */
export async function release(database: LmdbDatabase): Promise<void> {
  if (--database.users > 0) return
  opened.delete(database.id)
  await database.root.close()
}

/** @throws MillraceError `ERR_MILLRACE_CONFIG_STORE` if the path has another file or none: nobody else would see writes */
export function checkFile({ file, id }: LmdbDatabase): void {
  const now = idOf(file)
  if (now === id) return
  const value = now === undefined ? 'a file that was removed' : 'another file'
  const expected = `the file that was opened as ${file} (close the store, and open it again)`
  throw new MillraceError('ERR_MILLRACE_CONFIG_STORE', 'path', value, expected)
}

/** As LMDB has it: a path with an extension is the file, another one its folder. What is there already decides first. */
function isFilePath(path: string): boolean {
  const stats = statsOf(path)
  return stats === undefined ? extname(path) !== '' : !stats.isDirectory()
}

function openFile(path: string, isFile: boolean, file: string, mapSize: number | undefined): LmdbDatabase {
  const parent = dirname(resolve(path))
  try {
    if (!existsSync(parent)) throw refused(path, `a path in a folder that exists: ${parent}`) // it may be misspelt
    if (!isFile && !existsSync(path)) mkdirSync(path)
    const isNew = !existsSync(file)
    const fault = faultOf(file)
    if (fault !== undefined) throw refused(path, fault)
    const lock = isFile ? `${file}-lock` : join(path, 'lock.mdb')
    if (existsSync(lock)) accessSync(lock, constants.R_OK | constants.W_OK) // to close a descriptor would end locks
    const database = openDatabase(path, isFile, file, mapSize)
    if (isNew) for (const folder of new Set([dirname(file), parent])) syncFolder(folder)
    return database
  } catch (error) {
    throw openError(path, error)
  }
}

function openDatabase(
  path: string,
  noSubdir: boolean,
  file: string,
  mapSize: number | undefined,
): LmdbDatabase {
  const root = open({
    path,
    noSubdir,
    maxReaders: MAX_READERS,
    ...(mapSize !== undefined && { mapSize }),
    // lmdb 3.5 by default overlaps syncs: `put` resolves when the commit is visible, and `flushed` when it is on disk;
    // after a power failure it opens the last flushed state. Without it, a commit is LMDB's own: fdatasync of the pages,
    // then the meta page by a descriptor with O_DSYNC, then it is visible, and `put` resolves. So what is acknowledged,
    // and what anyone reads, is on disk, as far as the disk keeps what it has been told to.
    overlappingSync: false,
    // With it, lmdb starts a batch whose promise nobody gets: a failed commit is an unhandled rejection.
    eventTurnBatching: false,
  })
  try {
    const policies = root.openDB<string, string>(POLICIES)
    const changes = root.openDB<unknown, number>({ name: 'changes', encoding: 'json' })
    return { root, policies, changes, file, id: idOf(file)!, users: 1 }
  } catch (error) {
    void root.close()
    throw error
  }
}

/** The order of bytes is that of keys. A key of 512 UTF-16 units has at most 1,536 bytes; LMDB takes 1,978. */
const UTF8 = {
  writeKey(key: string, target: Buffer, position: number): number {
    // lmdb takes another buffer after a RangeError. `write` would cut the key off.
    if (3 * key.length > target.length - position && Buffer.byteLength(key) > target.length - position)
      throw new RangeError('no room for the key')
    return position + target.write(key, position, 'utf8')
  },
  readKey: (source: Buffer, start: number, end: number): string => source.toString('utf8', start, end),
}

const POLICIES: RootDatabaseOptions & { name: string } = {
  name: 'policies',
  encoding: 'string',
  keyEncoder: UTF8,
}

/** Makes the entry of a new file last. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return // it has no descriptors of folders
  const descriptor = openSync(folder, 'r')
  fsyncSync(descriptor)
  closeSync(descriptor)
}

/** Undefined if it is not there, or may not be seen. */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

function idOf(file: string): string | undefined {
  const stats = statsOf(file)
  return stats && `${stats.dev}:${stats.ino}`
}

const EXPECTED: readonly (readonly [RegExp, string])[] = [
  [/EACCES|EPERM|EROFS|permission|not permitted/i, 'a path that this process may read and write'],
  [/ENOTDIR|EISDIR/, 'a path in a folder'],
  [/MDB_/, 'an LMDB database of policies'],
]

function openError(path: string, cause: unknown): MillraceError {
  if (cause instanceof MillraceError) return cause
  const message = cause instanceof Error ? cause.message : String(cause)
  const expected = EXPECTED.find(([pattern]) => pattern.test(message))?.[1] ?? 'an LMDB database that opens'
  return refused(path, `${expected} (${message})`, cause)
}

const refused = (path: string, expected: string, cause?: unknown): MillraceError =>
  new MillraceError('ERR_MILLRACE_CONFIG_STORE', 'path', path, expected, { cause })
