/** What the addon has for files that processes map together (`native/mapped_file_glue.cc`); each throws system errors. */
export interface NativeFiles {
  /** Takes the space of the whole file. */
  allocate(fd: number, bytes: number): void
  /** Exclusively where nobody else has the file open, else (unless `onlyAlone`) beside the others. */
  lock(fd: number, onlyAlone: boolean, patienceMs: number): 'alone' | 'shared' | 'busy'
  /** From alone to shared. */
  shareLock(fd: number, patienceMs: number): 'shared' | 'busy'
  unlock(fd: number): void
  /** The buffer keeps a descriptor of its own, for the lock, until it is collected. */
  map(fd: number, bytes: number): { buffer: ArrayBuffer; fd: number }
}
