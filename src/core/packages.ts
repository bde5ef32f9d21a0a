import { MillraceError } from './errors.js'

const NOT_FOUND = /^Cannot find (?:module|package) ["']((?:@[^/"']+\/)?[^./"'][^/"']*)/

const imported = new Map<string, unknown>()

/**
 * Hands over packages that a bundle has imported as ES modules. There, `require` may not reach them, or what they
 * require themselves. The build makes a module that calls it for each entry.
 */
export function providePackages(packages: Readonly<Record<string, unknown>>): void {
  for (const [name, all] of Object.entries(packages)) imported.set(name, all)
}

/**
 * Loads another package, perhaps an optional peer dependency. The build puts it around each of their imports in dist/; a
 * bundler reports by itself what is missing.
 * @throws MillraceError `ERR_MILLRACE_MISSING_PEER` if it, or a package that it needs, is not installed
 */
export function loadPackage<T>(name: string, load: () => T): T {
  const provided = imported.get(name)
  if (provided !== undefined) return provided as T
  try {
    return load()
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException
    const isMissing = code === 'MODULE_NOT_FOUND' || code === 'ERR_MODULE_NOT_FOUND'
    const missing = isMissing ? NOT_FOUND.exec(message)?.[1] : undefined
    if (missing === undefined) throw cause
    const expected = `an installed package (npm install ${missing})`
    throw new MillraceError('ERR_MILLRACE_MISSING_PEER', missing, undefined, expected, { cause })
  }
}
