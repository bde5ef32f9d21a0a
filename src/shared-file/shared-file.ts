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
 *
 * **Closing it** ends the mapping at once. The buffer is detached first, so no array on it leads to that memory any more.
 */
import { closeSync, fstatSync, readSync } from 'node:fs'
import { MillraceError } from '../core/errors.js'
import { type Arena, arenaIn, MAX_WORDS } from '../memory/arena.js'
import { HEADER, HEADER_WORDS, LAYOUT_VERSION, MAGIC } from '../memory/layout.js'
import { changeLimit } from '../memory/limit.js'
import { load, read } from '../memory/words.js'
import { neededAddon } from '../native/addon.js'
import type { Mapping, NativeFiles } from '../native/files.js'
import { createFile } from './create-file.js'
import { checkTime, FileClock, isOfThisBoot, resumeTime } from './file-clock.js'
import { type LockedFile, openLocked } from './lock.js'
import type { Machine } from './machine.js'
import { type ArenaOptions, checkMatch, checkRuleName, mismatchError } from './mismatch.js'
import { fileError, OPTION, systemError } from './open-file.js'
import type { Opening } from './open-retries.js'
import { freeLostWays } from './repair.js'

/** A file that is open here: its arena, and the time that all who have it open go by. */
export interface SharedFile {
  readonly arena: Arena
  readonly clock: FileClock
  readonly place: { readonly path: string; readonly device: bigint; readonly inode: bigint }
  /** Ends the mapping: nothing may decide by the arena, or read it, from then on. */
  release(): void
}

/**
 * Opens the file, or makes it where there is none. The limit that is wanted is from now on that of all who have it open.
 * To be run by `openNow` or `openWithRetries`.
 * @throws MillraceError `ERR_MILLRACE_SHARED_FILE`, `ERR_MILLRACE_SHARED_MISMATCH`, `ERR_MILLRACE_NO_ADDON`,
 * `ERR_MILLRACE_ARENA_TOO_LARGE`
 */
export function* openSharedFile(path: string, options: ArenaOptions, machine: Machine): Opening<SharedFile> {
  const files = nativeFiles(path)
  return yield* withFileErrors(path, function* () {
    for (;;) {
      const file = (yield* openLocked(files, path)) ?? createFile(files, path, options, machine)
      if (file === undefined) yield
      else return yield* openArena(files, file, machine, (arena) => checkMatch(path, arena, options), options)
    }
  })
}

/** Opens the very file that a limiter of another thread has open. @throws MillraceError as {@link openSharedFile} */
export function* reopenSharedFile(
  place: SharedFile['place'],
  rule: string,
  machine: Machine,
): Opening<SharedFile> {
  const { path, device, inode } = place
  const files = nativeFiles(path)
  return yield* withFileErrors(path, function* () {
    const file = yield* openLocked(files, path)
    if (file?.stats.dev === device && file.stats.ino === inode) {
      return yield* openArena(files, file, machine, (arena) => checkRuleName(path, arena, rule))
    }
    if (file !== undefined) closeSync(file.fd)
    throw fileError(path, 'the file that the limiter was shared with, which is gone from there')
  })
}

function nativeFiles(path: string): NativeFiles {
  const { files } = neededAddon(OPTION, path)
  if (files === undefined)
    throw fileError(path, `Linux or macOS: there are no shared files on ${process.platform} yet`)
  return files
}

/** Errors of the system are errors of the option. */
function* withFileErrors<T>(path: string, act: () => Opening<T>): Opening<T> {
  try {
    return yield* act()
  } catch (error) {
    if (error instanceof MillraceError || typeof (error as NodeJS.ErrnoException)?.syscall !== 'string')
      throw error
    const { syscall } = error as NodeJS.ErrnoException
    throw systemError(
      path,
      `a path where all can be done that a shared file needs, such as ${syscall}`,
      error,
    )
  }
}

/** Maps the locked file, looks whether it is what it should be, and sets right what the dead left. */
function* openArena(
  files: NativeFiles,
  file: LockedFile,
  machine: Machine,
  check: (arena: Arena) => void,
  options?: ArenaOptions,
): Opening<SharedFile> {
  const { path, stats } = file
  const mapped = mapWhole(files, file)
  const unmap = () => mapped.unmap(mapped.buffer)
  try {
    const arena = soundArena(path, mapped.buffer)
    check(arena)
    const { words } = arena
    const isSameBoot = isOfThisBoot(words, machine)
    if (file.isAlone) {
      resumeTime(path, arena, machine)
      // None is counted: none was lost, unless the machine went down with some of the file not yet on its disk.
      if (load(words, HEADER.CLAIMING) !== 0 || isSameBoot !== true) freeLostWays(arena)
      while (files.shareLock(mapped.fd) === 'busy') yield
    } else if (isSameBoot === false) {
      throw fileError(path, 'a file that no process of another machine or start of the machine has open')
    }
    const clock = new FileClock(arena, machine)
    checkTime(path, arena, clock.now())
    if (options !== undefined) changeLimit(words, options.rule.limit)
    const release = () => {
      clock.note()
      unmap()
    }
    return { arena, clock, place: { path, device: stats.dev, inode: stats.ino }, release }
  } catch (error) {
    unmap()
    throw error
  }
}

/** Maps the file, all of its space taken, and closes its descriptor: the mapping has one of its own. */
function mapWhole(files: NativeFiles, { path, fd, isAlone }: LockedFile): Mapping {
  try {
    const bytes = fstatSync(fd).size
    if (bytes < 4 * HEADER_WORDS || bytes > 4 * MAX_WORDS || bytes % 4 !== 0) {
      throw fileError(path, `an arena of Millrace; it is foreign, or cut to ${bytes} bytes`)
    }
    checkVersion(path, fd)
    if (isAlone) fillHoles(files, path, fd, bytes)
    // Node-API has marked it as not to be transferred. (To mark it again by `markAsUntransferable` makes Node.js 24 and 26 abort
    // where a thread ends, which detaches it.)
    return files.map(fd, bytes)
  } catch (error) {
    if (error instanceof MillraceError) throw error
    throw systemError(path, 'a file system whose files can be mapped', error)
  } finally {
    closeSync(fd)
  }
}

/**
 * A copy may have lost the space that its zeros had. To touch such a hole in the mapping when the disk is full would end the
 * process, so its space is taken again. By a process that has the file alone: where the system has no call for it, it is done by
 * writing zeros, which may not meet counts.
 */
function fillHoles(files: NativeFiles, path: string, fd: number, bytes: number): void {
  try {
    files.allocate(fd, bytes)
  } catch (error) {
    throw systemError(path, `room for all of its ${bytes} bytes: it has holes, as sparse copies have`, error)
  }
}

/** Reads it, as yet unmapped: its header may be a hole. */
function checkVersion(path: string, fd: number): void {
  const header = new Int32Array(HEADER_WORDS)
  readSync(fd, header, 0, 4 * HEADER_WORDS, 0)
  if (read(header, HEADER.MAGIC) !== MAGIC) throw fileError(path, 'an arena of Millrace')
  const version = read(header, HEADER.VERSION)
  if (version === LAYOUT_VERSION) return
  const said = (number: number) => `layout version ${number}`
  throw mismatchError(path, 'layout version', said(LAYOUT_VERSION), said(version))
}

function soundArena(path: string, buffer: ArrayBuffer): Arena {
  const refuse = (expected: string, value?: unknown): MillraceError =>
    fileError(path, value === undefined ? expected : `${expected}; it has ${value}`)
  const arena = arenaIn(buffer, refuse)
  const { words } = arena.shape
  if (buffer.byteLength !== 4 * words)
    throw refuse(`${4 * words} bytes for its shape`, `${buffer.byteLength} bytes`)
  if (read(arena.words, HEADER.MAX_KEYS) < 1) throw refuse('an arena of Millrace with a sound header')
  return arena
}
