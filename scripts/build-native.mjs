// Compiles the addon into prebuilds/, where node-gyp-build finds it and `npm pack` takes it along. It is built in a folder
// of its own: node-gyp builds into build/ of the folder it is in, and ours holds the compiled tests.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
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
const env = { ...process.env, PREBUILD_NODE_GYP: join(root, 'node_modules', '.bin', 'node-gyp') }
// Where Node's headers came along with it, they need not be fetched.
const prefix = join(dirname(process.execPath), '..')
if (existsSync(join(prefix, 'include/node/node_api.h'))) env.npm_config_nodedir ??= prefix
const { status } = spawnSync(process.execPath, [prebuildify, ...args], {
  cwd: folder,
  env,
  stdio: ['ignore', 2, 2],
})
process.exitCode = status ?? 1
