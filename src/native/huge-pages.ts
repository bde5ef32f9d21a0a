import { invalid } from '../core/errors.js'
import { neededAddon } from './addon.js'

const OPTION = 'hugePages'

/**
 * Asks Linux to back a buffer by pages of 2 MiB. It is asked only for memory that no key has used yet.
 * @throws MillraceError `ERR_MILLRACE_NO_ADDON`; `ERR_MILLRACE_INVALID_OPTION` where the system has no such pages
 */
export function useHugePages(buffer: SharedArrayBuffer): void {
  const { useHugePages: ask } = neededAddon(OPTION, true)
  if (ask === undefined) throw invalid(OPTION, true, 'Linux, or no value')
  const error = ask(new Int32Array(buffer))
  if (error !== 0) {
    const expected = `a kernel with transparent huge pages (madvise ended with error ${error})`
    throw invalid(OPTION, true, expected)
  }
}
