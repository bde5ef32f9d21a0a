import { closeSync } from 'node:fs'
import type { NativeFiles } from '../native/files.js'
import { isStillAt, type OpenFile, openFile, systemError } from './open-file.js'
import type { Opening } from './open-retries.js'

/** A file that is open and locked. */
export interface LockedFile extends OpenFile {
  /** Nobody else has it open. */
  readonly isAlone: boolean
}

/** Undefined where there is no such file, or it went away meanwhile. */
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
    // Looked at with the lock: what stood at the path when it was opened may have been deleted, and another made, since.
    if (isStillAt(path, file)) locked = { ...file, isAlone: lock === 'alone' }
    return locked
  } finally {
    if (locked === undefined) closeSync(file.fd)
  }
}

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
