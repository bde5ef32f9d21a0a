import { type BigIntStats, closeSync, constants, fstatSync, lstatSync, openSync } from 'node:fs'
import { MillraceError } from '../core/errors.js'

/** The option that has the path, for errors. */
export const OPTION = 'shared.file'

const OTHERS_MAY_WRITE = 0o022n
// O_NONBLOCK: opening a named pipe does not wait. It is then refused.
const FLAGS = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** An open file that, by its owner and mode, only this user can write. */
export interface OpenFile {
  readonly path: string
  readonly fd: number
  readonly stats: BigIntStats
}

/**
 * Opens a file for reading and writing. If there is none, creates it, or returns undefined if `make` is
 * false. Does not follow a symbolic link, which could lead to a file that someone else chose.
 * @throws MillraceError `ERR_MILLRACE_SHARED_FILE` if it is not a regular file, has another owner, or others
 * may write it
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

/** Whether the path still leads to this file. It may have been deleted or replaced since it was opened. */
export function isStillAt(path: string, { stats }: OpenFile): boolean {
  const there = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  return there !== undefined && there.dev === stats.dev && there.ino === stats.ino
}

/** An error of the file at `path`. */
export function fileError(path: string, expected: string, cause?: unknown): MillraceError {
  return new MillraceError('ERR_MILLRACE_SHARED_FILE', OPTION, path, expected, { cause })
}

/** The causes of errors that are limits of the system, and not a fault of the path. */
const LIMITS: Readonly<Record<string, string>> = {
  EMFILE: 'room for one more open file: this process has reached its limit',
  ENFILE: 'room for one more open file: the machine has reached its limit',
  ENOMEM: 'memory to map it: the process or the machine has no more',
}

/** An error for an error of the system, with its code. */
export function systemError(path: string, expected: string, error: unknown): MillraceError {
  const { code = 'unknown' } = error as NodeJS.ErrnoException
  return fileError(path, `${LIMITS[code] ?? expected} (${code})`, error)
}

function checkStats(path: string, { mode, uid }: BigIntStats): void {
  if ((mode & BigInt(constants.S_IFMT)) !== BigInt(constants.S_IFREG)) throw fileError(path, 'a regular file')
  const own = process.geteuid?.()
  if (own !== undefined && uid !== BigInt(own)) {
    throw fileError(path, `a file of the user that this process runs as (${own}; the file belongs to ${uid})`)
  }
  if ((mode & OTHERS_MAY_WRITE) !== 0n) {
    const bits = (mode & 0o777n).toString(8).padStart(4, '0')
    throw fileError(path, `a file that only its owner may write (mode 0600; it has ${bits})`)
  }
}
