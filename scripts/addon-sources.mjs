// Copies the sources of the addon, so that node-gyp can build in another folder. It writes to build/ of its
// folder, and the root's build/ holds the compiled tests.
import { cpSync, existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * Copies the sources to a folder. The folder must be below the root, so that node-addon-api is found from
 * there.
 */
export function copySources(folder) {
  for (const what of ['binding.gyp', 'package.json', 'native']) {
    cpSync(join(root, what), join(folder, what), { recursive: true })
  }
}

/** The prefix of Node's installed headers, or undefined if they have to be downloaded. */
export function headersPrefix() {
  const prefix = join(dirname(process.execPath), '..')
  return existsSync(join(prefix, 'include/node/node_api.h')) ? prefix : undefined
}
