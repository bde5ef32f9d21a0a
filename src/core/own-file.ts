import { readFileSync } from 'node:fs'
import { MillraceError } from './errors.js'

const NAME = 'millrace'

/**
 * The URL of a file of this package that is read or started rather than imported, by its path from the folder
 * of the built code. A bundler moves the code and leaves such files behind. At the expected place there may even
 * be a file of another package. So the package.json above the code must be that of this package.
 * @throws MillraceError `ERR_MILLRACE_BUNDLED` if it is not
 */
export function ownFile(path: string): URL {
  const here = import.meta.url as string | undefined // a bundle in CommonJS has none
  const root = here === undefined ? undefined : new URL('../../', here)
  if (root === undefined || !isPackageRoot(root)) {
    const expected =
      'the package in a folder of its own: mark it external when you bundle ' +
      `(esbuild: --external:${NAME}; Rollup and webpack: external: ['${NAME}']; ` +
      `Next.js: serverExternalPackages: ['${NAME}'])`
    throw new MillraceError('ERR_MILLRACE_BUNDLED', path, here, expected)
  }
  return new URL(`../${path}`, here)
}

function isPackageRoot(root: URL): boolean {
  try {
    return JSON.parse(readFileSync(new URL('package.json', root), 'utf8')).name === NAME
  } catch {
    return false // no file, or not readable
  }
}
