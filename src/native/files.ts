/** What the addon has for files that processes map together (`native/mapped_file_glue.cc`); each throws system errors. */
export interface NativeFiles {
  /** Takes the space of the whole file. */
  allocate(fd: number, bytes: number): void
  /** Exclusively where nobody else has the file open, else (unless `onlyAlone`) beside the others. Waits for nothing. */
  lock(fd: number, onlyAlone: boolean): 'alone' | 'shared' | 'busy'
  /** From alone to shared. Waits for nothing. */
  shareLock(fd: number): 'shared' | 'busy'
  map(fd: number, bytes: number): Mapping
  /** By how much the wall clock may be wrong, as the kernel knows; `Infinity` where nothing keeps it right. */
  wallErrorMs(): number
}

/** A mapped file. It has a descriptor of its own, which bears the lock. */
export interface Mapping {
  readonly buffer: ArrayBuffer
  readonly fd: number
  /**
   * Detaches `buffer`, which must be this mapping's: arrays on it have no length from then on. Then ends the mapping, its
   * descriptor and its lock. Without it they last until the buffer is collected, or its thread ends. May be called twice.
   */
  unmap(buffer: ArrayBuffer): void
}
