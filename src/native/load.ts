import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { MillraceError } from '../core/errors.js'

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

export interface Addon {
  /** Absent where the system has no such files: Windows. */
  readonly files?: NativeFiles
}

/** @throws MillraceError `ERR_MILLRACE_NO_ADDON` */
export function loadAddon(option: string, value: unknown): Addon {
  if (process.env.MILLRACE_NATIVE === '0') {
    throw noAddon(option, value, 'the C++ addon, which MILLRACE_NATIVE=0 has switched off')
  }
  try {
    const require = createRequire(import.meta.url)
    return require('node-gyp-build')(fileURLToPath(new URL('../../', import.meta.url)))
  } catch (cause) {
    const expected =
      `the C++ addon, which this package has none of for ${process.platform}-${process.arch}: install the package whole, not ` +
      'bundled, or build it in a clone by `npm run build:native` (Python 3 and a C++20 compiler)'
    throw noAddon(option, value, expected, cause)
  }
}

function noAddon(option: string, value: unknown, expected: string, cause?: unknown): MillraceError {
  return new MillraceError('ERR_MILLRACE_NO_ADDON', option, value, expected, { cause })
}
