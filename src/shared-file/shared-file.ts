/**
 * The arenas of a limiter in a file that processes map.
 *
 * **Creating.** The first process creates the file under another name (`.new`), locks it, writes it, and
 * renames it when it is complete: its space is allocated and its header is on the disk. So under its own name
 * the file is never incomplete, even if its creator is killed. The lock of a dead creator is gone, so the
 * next process starts again with its `.new` file. Of two processes at once one gets the lock. The other waits
 * a moment and finds the file.
 *
 * **Locking.** Each process holds a shared lock on the file while it may decide. A process that gets the
 * exclusive lock when it opens the file has it *alone*: no other process decides. So it may free the ways
 * that dead processes left CLAIMED, and change the file's time. The system releases a lock when its process
 * dies, for any reason. No decision takes or waits for a lock.
 *
 * **Closing** ends the mapping at once. The buffer is detached first, so no array refers to that memory any
 * more.
 */
import { closeSync, fstatSync, readSync } from 'node:fs'
import { MillraceError } from '../core/errors.js'
import { MOST_RULES } from '../core/rule.js'
import { MAX_WORDS } from '../memory/arena.js'
import { type Arenas, arenasIn, changeLimitOf, wordsOf } from '../memory/arenas.js'
import { HEADER, HEADER_WORDS, LAYOUT_VERSION, MAGIC } from '../memory/layout.js'
import { load, read } from '../memory/words.js'
import { neededAddon } from '../native/addon.js'
import type { Mapping, NativeFiles } from '../native/files.js'
import { createFile } from './create-file.js'
import { checkFileClock, checkTime, FileClock, isOfThisBoot, resumeTime } from './file-clock.js'
import { type LockedFile, openLocked } from './lock.js'
import type { Machine } from './machine.js'
import { type ArenaOptions, checkMatch, checkRuleNames, mismatchError } from './mismatch.js'
import { fileError, OPTION, systemError } from './open-file.js'
import type { Opening } from './open-retries.js'
import { freeLostWays } from './repair.js'

/** A file that this process has open: its arenas, and the clock that all processes share. */
export interface SharedFile {
  readonly arenas: Arenas
  readonly clock: FileClock
  readonly place: { readonly path: string; readonly device: bigint; readonly inode: bigint }
  /** Ends the mapping. The arenas must not be used after that. */
  release(): void
}

/**
 * Opens the file, or creates it. The limits in `options` become those of all processes that have the file
 * open, except those of rules whose window has been changed since by `update`. The caller runs the generator by `openNow` or `openWithRetries`.
 * @throws MillraceError `ERR_MILLRACE_SHARED_FILE`, `ERR_MILLRACE_SHARED_MISMATCH`, `ERR_MILLRACE_NO_ADDON`,
 * `ERR_MILLRACE_ARENA_TOO_LARGE`
 */
export function* openSharedFile(path: string, options: ArenaOptions, machine: Machine): Opening<SharedFile> {
  const files = nativeFiles(path)
  return yield* withFileErrors(path, function* () {
    for (;;) {
      const file = (yield* openLocked(files, path)) ?? createFile(files, path, options, machine)
      if (file === undefined) yield
      else
        return yield* openArenas(files, file, machine, (arenas) => checkMatch(path, arenas, options), options)
    }
  })
}

/** Opens the same file as a limiter of another thread. @throws MillraceError as {@link openSharedFile} */
export function* reopenSharedFile(
  place: SharedFile['place'],
  names: readonly string[],
  machine: Machine,
): Opening<SharedFile> {
  const { path, device, inode } = place
  const files = nativeFiles(path)
  return yield* withFileErrors(path, function* () {
    const file = yield* openLocked(files, path)
    if (file?.stats.dev === device && file.stats.ino === inode) {
      return yield* openArenas(files, file, machine, (arenas) => checkRuleNames(path, arenas, names))
    }
    if (file !== undefined) closeSync(file.fd)
    throw fileError(path, 'the file that the limiter was shared with, which was deleted or replaced')
  })
}

function nativeFiles(path: string): NativeFiles {
  const { files } = neededAddon(OPTION, path)
  if (files === undefined)
    throw fileError(path, `Linux or macOS: there are no shared files on ${process.platform} yet`)
  return files
}

/** Turns errors of the system into errors of the option. */
function* withFileErrors<T>(path: string, act: () => Opening<T>): Opening<T> {
  try {
    return yield* act()
  } catch (error) {
    if (error instanceof MillraceError || typeof (error as NodeJS.ErrnoException)?.syscall !== 'string')
      throw error
    const { syscall } = error as NodeJS.ErrnoException
    throw systemError(path, `a path that allows every operation on a shared file, such as ${syscall}`, error)
  }
}

/** Maps the locked file and checks it. If this process has it alone, repairs what dead processes left. */
function* openArenas(
  files: NativeFiles,
  file: LockedFile,
  machine: Machine,
  check: (arenas: Arenas) => void,
  options?: ArenaOptions,
): Opening<SharedFile> {
  const { path, stats } = file
  const mapped = mapWhole(files, file)
  const unmap = () => mapped.unmap(mapped.buffer)
  try {
    const arenas = soundArenas(path, mapped.buffer)
    check(arenas)
    const [{ words }] = arenas
    const isSameBoot = isOfThisBoot(words, machine)
    if (file.isAlone) {
      resumeTime(path, arenas, machine)
      // CLAIMING counts lost ways. It may be wrong if the machine stopped before all of the file was on the
      // disk.
      for (const arena of arenas) {
        if (load(arena.words, HEADER.CLAIMING) !== 0 || isSameBoot !== true) freeLostWays(arena)
      }
      while (files.shareLock(mapped.fd) === 'busy') yield
    } else if (isSameBoot === false) {
      throw fileError(path, 'a file that no process of another machine or boot has open')
    } else {
      checkFileClock(arenas, machine)
    }
    const clock = new FileClock(arenas, machine)
    checkTime(path, arenas, clock.now())
    // The limits belong to the windows of the options, which may not be the present ones.
    for (const [i, { limit, windowMs, buckets }] of options?.rules.entries() ?? []) {
      const { shape } = arenas[i]!
      if (shape.windowMs === windowMs && shape.buckets === buckets) changeLimitOf(arenas, i, limit)
    }
    const release = () => {
      clock.recordWallClock()
      unmap()
    }
    return { arenas, clock, place: { path, device: stats.dev, inode: stats.ino }, release }
  } catch (error) {
    unmap()
    throw error
  }
}

/** Maps the file, with all of its space allocated, and closes its descriptor. The mapping has its own. */
function mapWhole(files: NativeFiles, { path, fd, isAlone }: LockedFile): Mapping {
  try {
    const bytes = fstatSync(fd).size
    if (bytes < 4 * HEADER_WORDS || bytes > 4 * MOST_RULES * MAX_WORDS || bytes % 4 !== 0) {
      throw fileError(path, `an arena of Millrace; it is foreign, or cut to ${bytes} bytes`)
    }
    checkVersion(path, fd)
    if (isAlone) fillHoles(files, path, fd, bytes)
    // Node-API has marked the buffer as untransferable. Marking it again by `markAsUntransferable` makes
    // Node.js 24 and 26 abort when a thread ends, which detaches the buffer.
    return files.map(fd, bytes)
  } catch (error) {
    if (error instanceof MillraceError) throw error
    throw systemError(path, 'a file system whose files can be mapped', error)
  } finally {
    closeSync(fd)
  }
}

/**
 * Allocates the holes of the file. A sparse copy has holes instead of its zeros. A process that touches a
 * hole in the mapping while the disk is full is killed. Only a process that has the file alone does this:
 * without a system call for it, the addon writes zeros, which must not overwrite counts.
 */
function fillHoles(files: NativeFiles, path: string, fd: number, bytes: number): void {
  try {
    files.allocate(fd, bytes)
  } catch (error) {
    throw systemError(path, `room for all of its ${bytes} bytes: it has holes, as sparse copies have`, error)
  }
}

/** Reads the header before the file is mapped, because the header may be a hole. */
function checkVersion(path: string, fd: number): void {
  const header = new Int32Array(HEADER_WORDS)
  readSync(fd, header, 0, 4 * HEADER_WORDS, 0)
  if (read(header, HEADER.MAGIC) !== MAGIC) throw fileError(path, 'an arena of Millrace')
  const version = read(header, HEADER.VERSION)
  if (version === LAYOUT_VERSION) return
  const described = (number: number) => `layout version ${number}`
  throw mismatchError(path, 'layout version', described(LAYOUT_VERSION), described(version))
}

function soundArenas(path: string, buffer: ArrayBuffer): Arenas {
  const unsoundError = (expected: string, value?: unknown): MillraceError =>
    fileError(path, value === undefined ? expected : `${expected}; it has ${value}`)
  const arenas = arenasIn(buffer, unsoundError)
  const words = wordsOf(arenas)
  if (buffer.byteLength !== 4 * words)
    throw unsoundError(`${4 * words} bytes for its shape`, `${buffer.byteLength} bytes`)
  if (arenas.some((arena) => read(arena.words, HEADER.MAX_KEYS) < 1)) {
    throw unsoundError('an arena of Millrace with a valid header')
  }
  return arenas
}
