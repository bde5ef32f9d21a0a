// Compiles the addon into prebuilds/, where node-gyp-build finds it and `npm pack` takes it along. It is built in a folder
// of its own: node-gyp builds into build/ of the folder it is in, and ours holds the compiled tests.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = join(root, '.cache', 'native') // below the root, so that node-addon-api is found from it
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
for (const what of ['binding.gyp', 'package.json', 'native']) {
  cpSync(join(root, what), join(folder, what), { recursive: true })
}
const prebuildify = join(root, 'node_modules', 'prebuildify', 'bin.js')
const args = ['--napi', '--tag-libc', '--target', process.versions.node, '--out', root]
if (process.platform !== 'win32') args.push('--strip')
const { status } = spawnSync(process.execPath, [prebuildify, ...args], {
  cwd: folder,
  env: { ...process.env, PREBUILD_NODE_GYP: join(root, 'node_modules', '.bin', 'node-gyp') },
  stdio: ['ignore', 2, 2],
})
process.exitCode = status ?? 1
