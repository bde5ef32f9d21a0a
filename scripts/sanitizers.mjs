// Builds the addon with sanitizers, and makes the environment in which Node runs it. Node has no sanitizer
// compiled in, so the sanitizer's library is preloaded. Node's allocations then go through it, and it checks
// the memory of every array. Growable arrays and mapped files are not allocated, so it does not check those.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { copySources, headersPrefix } from './addon-sources.mjs'

export const root = fileURLToPath(new URL('..', import.meta.url))
export const compiler = process.env.CXX ?? 'c++'

/**
 * `libraries` are preloaded. The sanitizer looks for the exceptions of the C++ library before Node has loaded
 * that.
 */
export const SANITIZERS = {
  thread: { flags: ['-fsanitize=thread'], libraries: ['libtsan.so', 'libstdc++.so.6'] },
  address: { flags: ['-fsanitize=address'], libraries: ['libasan.so', 'libstdc++.so.6'] },
  // float-cast-overflow is off by default, and arithmetic on ticks could cause one.
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

/** Makes an empty folder below .cache/. */
export function emptyFolder(name) {
  const folder = join(root, '.cache', name)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  return folder
}

/** Builds the addon. Returns the value for MILLRACE_PREBUILD. Throws the compiler's output. */
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

/** The environment for Node with that build. Each report becomes a file in the folder `reports`. */
export function environmentFor(sanitizers, addon, reports) {
  const libraries = [...new Set(sanitizers.flatMap((name) => SANITIZERS[name].libraries))]
  const log = `log_path=${join(reports, 'report')}`
  return {
    ...process.env,
    LD_PRELOAD: libraries.map(libraryPath).join(' '),
    MILLRACE_PREBUILD: addon,
    MILLRACE_NATIVE: '1',
    MILLRACE_EVERY_TEST: '1',
    // Node frees little memory at its end, so leaks of the addon look like Node's own. Node's new
    // and delete are only partly intercepted, so a mismatch of the two means nothing.
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

/** The reports, one text each. Together with another sanitizer, UBSan writes to standard error instead. */
export function reportsIn(folder, output = '') {
  const texts = readdirSync(folder).map((file) => readFileSync(join(folder, file), 'utf8'))
  return /runtime error: /.test(output) ? [...texts, output] : texts
}

/** Runs a command. Resolves with its exit code or signal, and its output. */
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
