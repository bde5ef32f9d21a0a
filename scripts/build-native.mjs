// Compiles the addon into prebuilds/. node-gyp-build finds it there, and `npm pack` includes it.
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { copySources, headersPrefix } from './addon-sources.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = join(root, '.cache', 'native')
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })
copySources(folder)
const prebuildify = join(root, 'node_modules', 'prebuildify', 'bin.js')
const args = ['--napi', '--tag-libc', '--target', process.versions.node, '--out', root]
if (process.platform !== 'win32') args.push('--strip')
const nodeGyp = process.platform === 'win32' ? 'node-gyp.cmd' : 'node-gyp'
const env = { ...process.env, PREBUILD_NODE_GYP: join(root, 'node_modules', '.bin', nodeGyp) }
const prefix = headersPrefix()
if (prefix !== undefined) env.npm_config_nodedir ??= prefix
const { status } = spawnSync(process.execPath, [prebuildify, ...args], {
  cwd: folder,
  env,
  stdio: ['ignore', 2, 2],
})
process.exitCode = status ?? 1
