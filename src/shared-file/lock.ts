import { closeSync } from 'node:fs'
import type { NativeFiles } from '../native/files.js'
import { isStillAt, type OpenFile, openFile, systemError } from './open-file.js'
import type { Opening } from './open-retries.js'

/** A file that is open and locked. */
export interface LockedFile extends OpenFile {
  /** Whether no other process has the file open. */
  readonly isAlone: boolean
}

/** Opens and locks a file. Returns undefined if there is no such file, or if it was deleted meanwhile. */
export function* openLocked(files: NativeFiles, path: string): Opening<LockedFile | undefined> {
  const file = openFile(path, false)
  if (file === undefined) return undefined
  let locked: LockedFile | undefined
  try {
    let lock = tryLock(files, file, false)
    while (lock === 'busy') {
      yield
      lock = tryLock(files, file, false)
    }
    // With the lock: since it was opened, the file may have been deleted and another one created at the path.
    if (isStillAt(path, file)) locked = { ...file, isAlone: lock === 'alone' }
    return locked
  } finally {
    if (locked === undefined) closeSync(file.fd)
  }
}

/** Locks a file exclusively ('alone') or, unless `onlyAlone`, with a shared lock. Does not wait. */
export function tryLock(
  files: NativeFiles,
  { path, fd }: OpenFile,
  onlyAlone: boolean,
): 'alone' | 'shared' | 'busy' {
  try {
    return files.lock(fd, onlyAlone)
  } catch (error) {
    throw systemError(path, 'a file system with locks', error)
  }
}
