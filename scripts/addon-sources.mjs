// What the addon is built from, for builds in folders of their own: node-gyp builds into build/ of the folder it is in, and
// ours holds the compiled tests.
import { cpSync, existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Copies it to a folder, which lies below the root, so that node-addon-api is found from it. */
export function copySources(folder) {
  for (const what of ['binding.gyp', 'package.json', 'native']) {
    cpSync(join(root, what), join(folder, what), { recursive: true })
  }
}

/** Where Node's headers came along with it, they need not be fetched: undefined where they did not. */
export function headersPrefix() {
  const prefix = join(dirname(process.execPath), '..')
  return existsSync(join(prefix, 'include/node/node_api.h')) ? prefix : undefined
}
