import { readFileSync } from 'node:fs'
import { MillraceError } from './errors.js'

const NAME = 'millrace'

/**
 * Where a file of this package lies that is read or started rather than imported, by its path from the package's root.
 * A bundler moves the code and leaves such files behind; worse, at the place where they would be it may find those of
 * somebody else. So the package.json beside the code has to be ours.
 * @throws MillraceError `ERR_MILLRACE_BUNDLED` where it is not
 */
export function ownFile(path: string): URL {
  const here = import.meta.url as string | undefined // a bundle in CommonJS has none
  const root = here === undefined ? undefined : new URL('../../', here)
  if (root === undefined || !isPackageRoot(root)) {
    const expected =
      'the package in a folder of its own: mark it external when you bundle ' +
      `(esbuild: --external:${NAME}; Rollup and webpack: external: ['${NAME}'])`
    throw new MillraceError('ERR_MILLRACE_BUNDLED', path, here, expected)
  }
  return new URL(path, root)
}

function isPackageRoot(root: URL): boolean {
  try {
    return JSON.parse(readFileSync(new URL('package.json', root), 'utf8')).name === NAME
  } catch {
    return false // none, or none that can be read
  }
}
