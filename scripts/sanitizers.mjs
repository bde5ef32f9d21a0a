// Builds of the addon with a sanitizer in them, and the environment in which Node runs them. Node itself has no sanitizer in
// it, so its library is loaded ahead of everything else; what Node allocates goes through it, too, and so the memory
// behind every array is watched, but for arrays that may grow and for mapped files, which are not allocated.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { copySources, headersPrefix } from './addon-sources.mjs'

export const root = fileURLToPath(new URL('..', import.meta.url))
export const compiler = process.env.CXX ?? 'c++'

/** `libraries` go ahead of Node's own: the C++ library with them, as its exceptions are looked for before Node has loaded it. */
export const SANITIZERS = {
  thread: { flags: ['-fsanitize=thread'], libraries: ['libtsan.so', 'libstdc++.so.6'] },
  address: { flags: ['-fsanitize=address'], libraries: ['libasan.so', 'libstdc++.so.6'] },
  // Of the undefined operations that are left out by default, the one that arithmetic on ticks could do.
  undefined: {
    flags: ['-fsanitize=undefined,float-cast-overflow'],
    libraries: ['libubsan.so', 'libstdc++.so.6'],
  },
}

export const flagsOf = (sanitizers) => [
  ...sanitizers.flatMap((name) => SANITIZERS[name].flags),
  '-fno-sanitize-recover=all',
  '-fno-omit-frame-pointer',
  '-g',
]

/** A folder below .cache/ that is empty. */
export function emptyFolder(name) {
  const folder = join(root, '.cache', name)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  return folder
}

/** Builds the addon; the folder is what MILLRACE_PREBUILD is to be. Throws with what the compiler said. */
export function buildAddon(sanitizers) {
  const folder = emptyFolder(join('sanitize', sanitizers.join('-')))
  copySources(folder)
  const flags = flagsOf(sanitizers).join(' ')
  const env = { ...process.env, CXXFLAGS: flags, LDFLAGS: flags, CXX: compiler }
  const prefix = headersPrefix()
  if (prefix !== undefined) env.npm_config_nodedir ??= prefix
  const gyp = join(root, 'node_modules', 'node-gyp', 'bin', 'node-gyp.js')
  const built = spawnSync(process.execPath, [gyp, 'rebuild'], { cwd: folder, env, encoding: 'utf8' })
  if (built.status !== 0) throw new Error(`${built.stdout}${built.stderr}`)
  return folder
}

/** The environment for Node with that build; reports go to `reports`, one file each. */
export function environmentFor(sanitizers, addon, reports) {
  const libraries = [...new Set(sanitizers.flatMap((name) => SANITIZERS[name].libraries))]
  const log = `log_path=${join(reports, 'report')}`
  return {
    ...process.env,
    LD_PRELOAD: libraries.map(libraryPath).join(' '),
    MILLRACE_PREBUILD: addon,
    MILLRACE_NATIVE: '1',
    MILLRACE_EVERY_TEST: '1',
    // No leaks are looked for: at its end Node leaves to the system most of what it has, and no line of ours is told from that.
    // Nor does it matter to whom an allocation is given back: Node's own new and delete are only partly seen.
    ASAN_OPTIONS: `${log}:detect_leaks=0:alloc_dealloc_mismatch=0`,
    UBSAN_OPTIONS: `${log}:print_stacktrace=1`,
    TSAN_OPTIONS: `${log}:exitcode=0`,
  }
}

function libraryPath(name) {
  const { stdout } = spawnSync(compiler, [`-print-file-name=${name}`], { encoding: 'utf8' })
  const path = stdout.trim()
  if (!existsSync(path)) throw new Error(`${compiler} has no ${name}: install its sanitizers`)
  return realpathSync(path)
}

/** What the sanitizers have reported, one text each. UBSan beside another writes to standard error all the same. */
export function reportsIn(folder, output = '') {
  const texts = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'))
  return /runtime error: /.test(output) ? [...texts, output] : texts
}

/** Runs a command; resolves with how it ended and all that it has written. */
export function run(command, args, env = process.env) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ ended: signal ?? code, output }))
  })
}
