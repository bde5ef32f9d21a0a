import { type BigIntStats, closeSync, constants, fstatSync, lstatSync, openSync } from 'node:fs'
import { MillraceError } from '../core/errors.js'

/** `option`, for errors: what the user gave the path by. */
export const OPTION = 'shared.file'

const OTHERS_MAY_WRITE = 0o022n
// Not blocking: a named pipe is opened, seen for what it is, and refused.
const FLAGS = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** A file that is open and may be trusted, as far as the file system can tell. */
export interface OpenFile {
  readonly path: string
  readonly fd: number
  readonly stats: BigIntStats
}

/**
 * Opens a file for reading and writing; undefined where there is none and `make` is false. Never by a symbolic link: the file
 * would be where somebody else says.
 * @throws MillraceError `ERR_MILLRACE_SHARED_FILE` where it is no regular file, somebody else's, or one that others may write
 */
export function openFile(path: string, make: boolean): OpenFile | undefined {
  let fd: number
  try {
    fd = openSync(path, make ? FLAGS | constants.O_CREAT : FLAGS, 0o600)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && !make) return undefined
    if (code === 'ELOOP') throw fileError(path, 'a file itself, not a symbolic link to one', error)
    if (code === 'EISDIR' || code === 'ENXIO') throw fileError(path, 'a regular file', error)
    throw systemError(path, 'a path that can be opened for reading and writing', error)
  }
  try {
    const stats = fstatSync(fd, { bigint: true })
    checkStats(path, stats)
    return { path, fd, stats }
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

/** Whether the path still leads to the file: it may have been deleted, or put in place of another, since. */
export function isStillAt(path: string, { stats }: OpenFile): boolean {
  const there = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  return there !== undefined && there.dev === stats.dev && there.ino === stats.ino
}

export function fileError(path: string, expected: string, cause?: unknown): MillraceError {
  return new MillraceError('ERR_MILLRACE_SHARED_FILE', OPTION, path, expected, { cause })
}

/** What the system's own limits refused is not the fault of the path, and is named as what it is. */
const LIMITS: Readonly<Record<string, string>> = {
  EMFILE: 'room for one more open file: this process has as many open as it may',
  ENFILE: 'room for one more open file: the machine has as many open as it may',
  ENOMEM: 'memory to map it: the process or the machine has no more',
}

/** An error of the system, with its code. */
export function systemError(path: string, expected: string, error: unknown): MillraceError {
  const { code = 'unknown' } = error as NodeJS.ErrnoException
  return fileError(path, `${LIMITS[code] ?? expected} (${code})`, error)
}

function checkStats(path: string, { mode, uid }: BigIntStats): void {
  if ((mode & BigInt(constants.S_IFMT)) !== BigInt(constants.S_IFREG)) throw fileError(path, 'a regular file')
  const own = process.geteuid?.()
  if (own !== undefined && uid !== BigInt(own)) {
    throw fileError(path, `a file of the user that this process runs as (${own}, the file is of ${uid})`)
  }
  if ((mode & OTHERS_MAY_WRITE) !== 0n) {
    const bits = (mode & 0o777n).toString(8).padStart(4, '0')
    throw fileError(path, `a file that nobody else may write (mode 0600, it has ${bits})`)
  }
}
