import { MillraceError } from './errors.js'

const NOT_FOUND = /^Cannot find (?:module|package) ["']((?:@[^/"']+\/)?[^./"'][^/"']*)/

/**
 * Loads an optional peer dependency. The build puts it around each of their imports in dist/; a bundler reports by
 * itself what is missing.
 * @throws MillraceError `ERR_MILLRACE_MISSING_PEER` if it, or a package that it needs, is not installed
 */
export function loadPeer<T>(load: () => T): T {
  try {
    return load()
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const isMissing = code === 'MODULE_NOT_FOUND' || code === 'ERR_MODULE_NOT_FOUND'
    const name = isMissing ? NOT_FOUND.exec(message)?.[1] : undefined
    if (name === undefined) throw cause
    const expected = `an installed package (npm install ${name})`
    throw new MillraceError('ERR_MILLRACE_MISSING_PEER', name, undefined, expected, { cause })
  }
}
