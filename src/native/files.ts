/**
 * Functions for files that processes map together (`native/mapped_file_glue.cc`). Each throws the system's
 * errors.
 */
export interface NativeFiles {
  /** Reserves disk space for the whole file. */
  allocate(fd: number, bytes: number): void
  /**
   * Locks the file exclusively if no other process has it open. Otherwise shares the lock with the other
   * processes, unless `onlyAlone` is set. Never waits.
   */
  lock(fd: number, onlyAlone: boolean): 'alone' | 'shared' | 'busy'
  /** Turns an exclusive lock into a shared lock. Never waits. */
  shareLock(fd: number): 'shared' | 'busy'
  /** Maps the first `bytes` of the file into memory. */
  map(fd: number, bytes: number): Mapping
  /**
   * The kernel's bound on the error of the wall clock, in milliseconds. `Infinity` if nothing synchronises
   * the clock.
   */
  wallErrorMs(): number
}

/** A mapped file. It has its own descriptor, which holds the lock. */
export interface Mapping {
  readonly buffer: ArrayBuffer
  readonly fd: number
  /**
   * Detaches `buffer`, which must be this mapping's, so that arrays on it have length 0. Then ends the
   * mapping, its descriptor and its lock. Without this call they last until the buffer is collected or its
   * thread ends. A second call does nothing.
   */
  unmap(buffer: ArrayBuffer): void
}
