// Runs every test file (or those whose path matches a pattern: `npm test -- memory`) by uvu's own command, each file in
// a process of its own: everything without the addon, then everything with it, as far as there is something to run. Ends with
// the plain line that a script can look for: N passed, N failed.
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isLeftOut } from './native/sides.js'

const root = fileURLToPath(new URL('.', import.meta.url))
const pattern = new RegExp(process.argv[2] ?? '')
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.js') && pattern.test(file))
  .sort()

/**
 * What there is only without it: the model; copies of the code that a machine plays step by step, or with mistakes in it, or in
 * a bundle; and what counts TypeScript's single operations, or comes in between two of them.
 */
const HAS_NO_ADDON =
  /^(explore|model|mutants|mutation)\/|^package\/bundle|^attack\/short-fingerprints|^algorithms\/interrupted|^memory\/words/
/** What there is only with it. */
const NEEDS_ADDON = /^shared-file\/|^stress\/(processes|addon-workers)|^examples\/cluster/
const PASSES = [
  { title: 'without the addon', wish: '0', files: files.filter((file) => !NEEDS_ADDON.test(file)) },
  { title: 'with the addon', wish: '1', files: files.filter((file) => !HAS_NO_ADDON.test(file)) },
]

/** A file that hangs has failed; the longest takes under a minute on a quiet machine. */
const MOST_MS = 600_000

let passed = 0
let failed = 0
for (const { title, wish, files } of passes()) {
  console.log(`${title} (MILLRACE_NATIVE=${wish}): ${files.length} files`)
  for (const file of files) await judge(file, { ...process.env, MILLRACE_NATIVE: wish })
}
if (files.length === 0) console.log(`no test file matches ${pattern}`)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 || passed === 0 ? 1 : 0

/** Both, unless MILLRACE_NATIVE asks for one, or the addon has not been built. */
function passes(): typeof PASSES {
  const { MILLRACE_NATIVE: wish } = process.env
  if (wish) return PASSES.filter((pass) => pass.wish === wish)
  return isLeftOut() ? PASSES.slice(0, 1) : PASSES
}

async function judge(file: string, env: NodeJS.ProcessEnv): Promise<void> {
  const started = performance.now()
  const { output, code } = await run(join(root, file), env)
  const [done, total, skipped] = [/Passed: +(\d+)/, /Total: +(\d+)/, /Skipped: +(\d+)/].map((line) =>
    Number(line.exec(output)?.[1] ?? 0),
  )
  const broke = code !== 0 && done === total ? 1 : 0 // the file itself failed, outside of any test
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  passed += done!
  failed += total! - done! + broke
  const isClean = code === 0 && done! + skipped! > 0
  if (code === 0 && !isClean) failed++ // a file without a test has not been tested
  console.log(`${isClean ? 'ok  ' : 'FAIL'} ${file} (${done} of ${total}, ${seconds} s)`)
  if (!isClean || skipped! > 0) console.log(output)
}

function run(file: string, env: NodeJS.ProcessEnv): Promise<{ output: string; code: number | null }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [file], {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: MOST_MS,
      env,
    })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    child.on('error', reject)
    child.on('close', (code) => resolve({ output, code }))
  })
}
