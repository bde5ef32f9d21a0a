import {
  closeSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  readSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { alignedTo, planFor, writeHeaders } from '../memory/arenas.js'
import { HEADER, MAGIC, NAMES_AT } from '../memory/layout.js'
import { write } from '../memory/words.js'
import type { NativeFiles } from '../native/files.js'
import { beginTime } from './file-clock.js'
import { type LockedFile, tryLock } from './lock.js'
import type { Machine } from './machine.js'
import type { ArenaOptions } from './mismatch.js'
import { fileError, isStillAt, type OpenFile, openFile, systemError } from './open-file.js'
import { writeRuleName } from './rule-name.js'

/**
 * Creates the file under its unfinished name (`.new`), and renames it. Returns undefined if another process
 * creates it now, or has created it.
 * @throws MillraceError `ERR_MILLRACE_SHARED_FILE`
 */
export function createFile(
  files: NativeFiles,
  path: string,
  options: ArenaOptions,
  machine: Machine,
): LockedFile | undefined {
  const bytes = 4 * planFor(options.rules, options.maxKeys).words
  const unfinished = openFile(`${path}.new`, true)!
  let created: LockedFile | undefined
  try {
    if (mayCreate(files, unfinished, path)) {
      fill(files, unfinished, bytes, headersFor(options, machine))
      renameSync(unfinished.path, path)
      created = { ...unfinished, path, isAlone: true }
    }
    return created
  } finally {
    if (created === undefined) closeSync(unfinished.fd)
  }
}

/**
 * Whether this process may create the file: it has the lock, the unfinished file is still there, and no other
 * process has created the file meanwhile.
 */
function mayCreate(files: NativeFiles, unfinished: OpenFile, path: string): boolean {
  if (tryLock(files, unfinished, true) === 'busy') return false
  // Another process renamed it before this one got the lock, and has it mapped.
  if (!isStillAt(unfinished.path, unfinished)) return false
  checkUnfinished(unfinished)
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return true
  unlinkSync(unfinished.path)
  return false
}

function fill(files: NativeFiles, { path, fd }: OpenFile, bytes: number, headers: PlacedHeader[]): void {
  fchmodSync(fd, 0o600)
  ftruncateSync(fd, 0)
  try {
    files.allocate(fd, bytes)
    for (const { header, start } of headers) writeSync(fd, header, 0, header.byteLength, 4 * start)
    fsyncSync(fd)
  } catch (error) {
    unlinkSync(path) // also frees the space that could be allocated
    throw systemError(path, `room for its ${bytes} bytes`, error)
  }
}

/**
 * Checks that a dead creator left the file. Then it is empty, or has only zeros (allocated, without its
 * header), or has our header. Any other file of that name belongs to someone else and must not be emptied,
 * nor a file with a hard link.
 * @throws MillraceError `ERR_MILLRACE_SHARED_FILE`
 */
function checkUnfinished({ path, fd }: OpenFile): void {
  const { nlink, size } = fstatSync(fd)
  if (nlink !== 1) throw fileError(path, `a file that has no other name (a hard link; it has ${nlink} names)`)
  const first = new Int32Array(1)
  if (size === 0 || (readSync(fd, first, 0, 4, 0) === 4 && first[HEADER.MAGIC] === MAGIC)) return
  if (!isAllZeros(fd)) throw fileError(path, 'an unfinished arena of Millrace, or no file')
}

function isAllZeros(fd: number): boolean {
  const part = Buffer.alloc(65_536)
  const zeros = Buffer.alloc(part.length)
  for (let at = 0; ; at += part.length) {
    const read = readSync(fd, part, 0, part.length, at)
    if (read === 0) return true
    if (!part.subarray(0, read).equals(zeros.subarray(0, read))) return false
  }
}

/** The header and the first record of an arena, which begins at word `start` of the file. */
interface PlacedHeader {
  readonly header: Int32Array
  readonly start: number
}

function headersFor({ rules, maxKeys, onFull, seeds }: ArenaOptions, machine: Machine): PlacedHeader[] {
  const { shapes, starts } = planFor(rules, maxKeys)
  const headers = rules.map(() => new Int32Array(NAMES_AT))
  const nowMs = machine.monotonicMs()
  writeHeaders(headers, shapes, alignedTo(machine.wallMs() - nowMs, rules), onFull, nowMs, seeds)
  for (const [i, header] of headers.entries()) {
    write(header, HEADER.MAX_KEYS, maxKeys)
    writeRuleName(header, rules[i]!.name)
  }
  beginTime(headers[0]!, machine)
  return headers.map((header, i) => ({ header, start: starts[i]! }))
}
