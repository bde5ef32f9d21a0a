// node scripts/build.mjs: src/ to build/lib/ and dist/, the src/ of cli/ and service/ to
// their dist/. `--dev` also compiles tests, benchmarks
// and demos to build/. `--if-changed` skips what is up to date: sources and outputs are as the last build left them.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = fileURLToPath(new URL('..', import.meta.url))
const require = createRequire(import.meta.url)
const TSC = join(dirname(require.resolve('typescript/package.json')), 'bin/tsc')
const tsc = (project) => [TSC, '-p', project]

/** Published packages of their own. */
const WORKSPACES = ['service', 'cli']
const SHARED = ['scripts', 'tsconfig.json', 'package.json']

const PACKAGE = {
  name: 'package',
  sources: ['src', ...WORKSPACES.flatMap((name) => [`${name}/src`, `${name}/tsconfig.json`]), ...SHARED],
  outputs: ['build/lib', 'dist', ...WORKSPACES.map((name) => `${name}/dist`)],
  steps: [
    tsc('tsconfig.json'),
    ['scripts/bundle.mjs'],
    ['scripts/dev-package.mjs'],
    ...WORKSPACES.map((name) => tsc(name)),
  ],
}
const DEV = {
  name: 'dev',
  sources: [...PACKAGE.sources, 'test', 'bench', 'demo', 'cli/test', 'tsconfig.dev.json'],
  outputs: ['build/test', 'build/bench', 'build/demo'],
  steps: [tsc('tsconfig.dev.json'), tsc('cli/test')],
}

const { values } = parseArgs({ options: { dev: { type: 'boolean' }, 'if-changed': { type: 'boolean' } } })
for (const target of values.dev ? [PACKAGE, DEV] : [PACKAGE]) build(target)

function build({ name, sources, outputs, steps }) {
  const record = join(root, '.cache/built', name)
  const before = hashOf(sources, contentOf)
  if (values['if-changed'] && existsSync(record)) {
    if (readFileSync(record, 'utf8') === before + hashOf(outputs, stateOf)) return
  }
  for (const folder of outputs) rmSync(join(root, folder), { recursive: true, force: true })
  for (const args of steps) {
    const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
    if (status !== 0) process.exit(status ?? 1)
  }
  mkdirSync(dirname(record), { recursive: true })
  writeFileSync(record, before + hashOf(outputs, stateOf))
}

function hashOf(paths, describe) {
  const hash = createHash('sha256')
  for (const file of paths.flatMap(filesIn)) hash.update(`${file}\0`).update(describe(join(root, file)))
  return hash.digest('hex')
}

function contentOf(path) {
  return readFileSync(path)
}

/** What tells that a file was written since. */
function stateOf(path) {
  const { size, mtimeMs } = statSync(path)
  return `${size} ${mtimeMs}`
}

/** The files of a folder in a fixed order, or the file itself; none if it does not exist. */
function filesIn(path) {
  if (!existsSync(join(root, path))) return []
  if (!statSync(join(root, path)).isDirectory()) return [path]
  return readdirSync(join(root, path))
    .filter((name) => name !== 'node_modules')
    .sort()
    .flatMap((name) => filesIn(`${path}/${name}`))
}
