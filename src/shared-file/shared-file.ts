/**
 * An arena in a file that processes map together.
 *
 * **Whoever is first makes it**, in a file beside it (`.new`) that is locked meanwhile, and renames that when it is whole:
 * its space taken, its header on the disk. So under its own name the file is never half made, whenever its maker is killed; what
 * a dead one left is locked by nobody, and the next one begins it anew. Two at once: one has the lock, the other
 * waits a moment and finds the file there.
 *
 * **Everybody keeps it locked** (shared) for as long as they may decide. Who gets the lock exclusively when it opens the
 * file has it alone: nobody decides, so it may free what dead processes left claimed and move the file's time. The system lets
 * go of a lock when its process dies, of whatever. No decision takes a lock or waits for one.
 */
import {
  closeSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  lstatSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import type { MillraceError } from '../core/errors.js'
import { type Arena, arenaIn, MAX_WORDS, shapeOf, writeHeader } from '../memory/arena.js'
import { HEADER, HEADER_WORDS, LAYOUT_VERSION, MAGIC } from '../memory/layout.js'
import { changeLimit } from '../memory/limit.js'
import { load, read, write } from '../memory/words.js'
import { neededAddon } from '../native/addon.js'
import type { NativeFiles } from '../native/files.js'
import { beginTime, FileClock, hasTime, isOfThisBoot, resumeTime } from './file-clock.js'
import type { Machine } from './machine.js'
import { checkMatch, checkRuleName, mismatch, type Wanted } from './mismatch.js'
import { isStillAt, OPTION, type OpenFile, openFile, refused } from './open-file.js'
import { freeLostWays } from './repair.js'
import { writeRuleName } from './rule-name.js'

/** The longest that a living process has the file to itself is a pass over it; one that is stopped there keeps all others out. */
const PATIENCE_MS = 10_000
const TRY_AGAIN_MS = 20

/** A file that is open here: its arena, and the time that all who have it open go by. */
export interface SharedFile {
  readonly arena: Arena
  readonly clock: FileClock
  readonly place: { readonly path: string; readonly device: bigint; readonly inode: bigint }
  /** Whoever opened it decides no more. The memory stays for as long as anything here refers to it. */
  release(): void
}

/**
 * Opens the file, or makes it where there is none. The limit that is wanted is from now on that of all who have it open.
 * @throws MillraceError `ERR_MILLRACE_SHARED_FILE`, `ERR_MILLRACE_SHARED_MISMATCH`, `ERR_MILLRACE_NO_ADDON`,
 * `ERR_MILLRACE_ARENA_TOO_LARGE`
 */
export function openSharedFile(path: string, wanted: Wanted, machine: Machine): SharedFile {
  const files = nativeFiles(path)
  const shape = shapeOf(wanted.rule, wanted.maxKeys)
  const endMs = performance.now() + PATIENCE_MS
  for (;;) {
    const file = openLocked(files, path) ?? make(files, path, wanted, 4 * shape.words, machine)
    if (file !== undefined)
      return enter(files, file, machine, (arena) => checkMatch(path, arena, wanted), wanted)
    if (performance.now() > endMs) throw stillLocked(path)
  }
}

/** Opens the very file that a limiter of another thread has open. @throws MillraceError as {@link openSharedFile} */
export function reopenSharedFile(place: SharedFile['place'], rule: string, machine: Machine): SharedFile {
  const files = nativeFiles(place.path)
  const file = openLocked(files, place.path)
  const isIt = file?.stats.dev === place.device && file.stats.ino === place.inode
  if (file !== undefined && isIt)
    return enter(files, file, machine, (arena) => checkRuleName(place.path, arena, rule))
  if (file !== undefined) closeSync(file.fd)
  throw refused(place.path, 'the file that the limiter was shared with, which is gone from there')
}

interface LockedFile extends OpenFile {
  readonly isAlone: boolean
}

function nativeFiles(path: string): NativeFiles {
  const { files } = neededAddon(OPTION, path)
  if (files === undefined)
    throw refused(path, `Linux or macOS: there are no shared files on ${process.platform} yet`)
  return files
}

/** Undefined where there is no such file, or it went away meanwhile. */
function openLocked(files: NativeFiles, path: string): LockedFile | undefined {
  const file = openFile(path, false)
  if (file === undefined) return undefined
  return orClosed(file, () => {
    const lock = locked(files, file, false, PATIENCE_MS)
    if (lock === 'busy') throw stillLocked(path)
    return isStillAt(path, file) ? { ...file, isAlone: lock === 'alone' } : undefined
  })
}

function locked(
  files: NativeFiles,
  { path, fd }: OpenFile,
  onlyAlone: boolean,
  patienceMs: number,
): 'alone' | 'shared' | 'busy' {
  try {
    return files.lock(fd, onlyAlone, patienceMs)
  } catch (error) {
    throw refused(path, `a file system with locks (flock: ${(error as NodeJS.ErrnoException).code})`, error)
  }
}

/** Undefined where another process makes it, or has made it. */
function make(
  files: NativeFiles,
  path: string,
  wanted: Wanted,
  bytes: number,
  machine: Machine,
): LockedFile | undefined {
  const unfinished = `${path}.new`
  const file = openFile(unfinished, true)!
  return orClosed(file, () => {
    if (locked(files, file, true, TRY_AGAIN_MS) === 'busy') return undefined
    // Renamed by its maker before the lock came here; then a process has it mapped. Or the file was made in between.
    if (!isStillAt(unfinished, file)) return undefined
    if (isThere(path)) {
      unlinkSync(unfinished)
      return undefined
    }
    fchmodSync(file.fd, 0o600)
    ftruncateSync(file.fd, 0)
    try {
      files.allocate(file.fd, bytes)
      writeSync(file.fd, headerFor(wanted, machine), 0, 4 * HEADER_WORDS, 0)
      fsyncSync(file.fd)
    } catch (error) {
      unlinkSync(unfinished) // and gives back the space, that it could not have all of
      throw refused(path, `room for its ${bytes} bytes (${(error as NodeJS.ErrnoException).code})`, error)
    }
    renameSync(unfinished, path)
    return { ...file, path, isAlone: true }
  })
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

function headerFor({ rule, maxKeys, onFull }: Wanted, machine: Machine): Int32Array {
  const header = new Int32Array(HEADER_WORDS)
  writeHeader(header, shapeOf(rule, maxKeys), rule, onFull, machine.monotonicMs())
  write(header, HEADER.MAX_KEYS, maxKeys)
  writeRuleName(header, rule.name)
  beginTime(header, machine)
  return header
}

/** Maps the locked file, looks whether it is what it should be, and sets right what the dead left. */
function enter(
  files: NativeFiles,
  file: LockedFile,
  machine: Machine,
  check: (arena: Arena) => void,
  wanted?: Wanted,
): SharedFile {
  const { path, stats } = file
  const mapped = orClosed(file, () => mapWhole(files, path, file.fd))
  closeSync(file.fd)
  try {
    const arena = soundArena(path, mapped.buffer)
    check(arena)
    if (file.isAlone) {
      // None is counted: none was lost, unless the machine went down with some of the file not yet on its disk.
      const { words } = arena
      if (load(words, HEADER.CLAIMING) !== 0 || isOfThisBoot(words, machine) !== true) freeLostWays(arena)
      resumeTime(arena, machine)
      if (files.shareLock(mapped.fd, PATIENCE_MS) === 'busy') throw stillLocked(path)
    } else if (isOfThisBoot(arena.words, machine) === false) {
      throw refused(path, 'a file that no process of another machine or start of the machine has open')
    }
    if (wanted !== undefined) changeLimit(arena.words, wanted.rule.limit)
    const clock = new FileClock(arena, machine)
    const release = () => {
      clock.note()
      files.unlock(mapped.fd)
    }
    return { arena, clock, place: { path, device: stats.dev, inode: stats.ino }, release }
  } catch (error) {
    files.unlock(mapped.fd) // the mapping itself goes when the collector comes to it
    throw error
  }
}

function mapWhole(files: NativeFiles, path: string, fd: number): { buffer: ArrayBuffer; fd: number } {
  const bytes = fstatSync(fd).size
  if (bytes < 4 * HEADER_WORDS || bytes > 4 * MAX_WORDS || bytes % 4 !== 0) {
    throw refused(path, `an arena of Millrace; it is foreign, or cut to ${bytes} bytes`)
  }
  try {
    // Node-API has marked it as not to be transferred. (To mark it again by `markAsUntransferable` makes Node.js 24 and 26 abort
    // where a thread ends, which detaches it.)
    return files.map(fd, bytes)
  } catch (error) {
    throw refused(
      path,
      `a file system whose files can be mapped (${(error as NodeJS.ErrnoException).code})`,
      error,
    )
  }
}

function soundArena(path: string, buffer: ArrayBuffer): Arena {
  const header = new Int32Array(buffer, 0, HEADER_WORDS)
  const version = read(header, HEADER.VERSION)
  if (read(header, HEADER.MAGIC) === MAGIC && version !== LAYOUT_VERSION) {
    const said = (number: number) => `layout version ${number}`
    throw mismatch(path, 'layout version', said(LAYOUT_VERSION), said(version))
  }
  const refuse = (expected: string, value?: unknown): MillraceError =>
    refused(path, value === undefined ? expected : `${expected}; it has ${value}`)
  const arena = arenaIn(buffer, refuse)
  const { words } = arena.shape
  if (buffer.byteLength !== 4 * words)
    throw refuse(`${4 * words} bytes for its shape`, `${buffer.byteLength} bytes`)
  if (!hasTime(arena)) throw refuse('an arena of Millrace with a sound header')
  return arena
}

function orClosed<T>({ fd }: OpenFile, act: () => T): T {
  let done: T | undefined
  try {
    done = act()
    return done
  } finally {
    if (done === undefined) closeSync(fd)
  }
}

function stillLocked(path: string): MillraceError {
  return refused(
    path,
    `a file that can be locked within ${PATIENCE_MS / 1000} s: a process that opens it is stopped`,
  )
}
