// npm run test:sanitize: the protocol in C++ and the addon under ThreadSanitizer, AddressSanitizer and UBSan (of GCC, on
// Linux). Passes when none of them reports anything, and when each reports the mistakes that are made for it.
//
// The test of the C++ protocol, with its threads, runs under each by itself. The addon runs in Node, of which nothing is
// instrumented; what that takes from each:
//
//   AddressSanitizer, UBSan   nothing of the addon's: every access that it makes is looked at, and what Node allocates for
//                             arrays has guarded borders. Arrays that may grow, and mapped files, have none.
//   ThreadSanitizer           JavaScript's accesses, atomic or plain, are not seen at all, so no race between C++ and JavaScript
//                             is: only one of two C++ calls on the same memory. That the two sides' operations have
//                             the same strength is an argument (native/words.h) and tests (test/native/both-sides), no
//                             sanitizer's word. Nor is it seen how Node orders its own threads: it finds "races" between parts of Node,
//                             which are counted and left; a report counts if the addon is on one of its stacks. One on a file
//                             descriptor does not: its number was given back by Node, in an order that is not seen.
//
// On x64 the vector loads of Table::waysNamed are plain accesses of words that others write: ThreadSanitizer gets a loop of relaxed
// loads there instead, so of the built code that one function is not what it has seen.
import { spawnSync } from 'node:child_process'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { headersPrefix } from './addon-sources.mjs'
import {
  buildAddon,
  compiler,
  emptyFolder,
  environmentFor,
  flagsOf,
  reportsIn,
  root,
  run,
} from './sanitizers.mjs'

const CELL_TEST = join(root, 'native/test/cell_test.cc')
const CELL_FLAGS = ['-std=c++20', '-O2', '-Wall', '-Wextra', '-Werror', '-ffp-contract=off', '-pthread']
const test = (name) => [`build/test/${name}.test.js`]
const IN_NODE = {
  thread: ['native/arguments', 'native/both-sides', 'shared-file/mapped-file'].map(test),
  'address-undefined': [
    ...[
      'native/arguments',
      'native/fuzz/fuzz',
      'native/both-sides',
      'native/parity',
      'shared-file/mapped-file',
    ].map(test),
    ['build/test/native/main.js', '--operations', '1000000', '--seed', '2'],
    ['build/test/stress/processes/main.js', '--seconds', '10'],
  ],
}
/** What each has to find, in C++ alone by -D and in Node by a function, and what it says then. */
const MISTAKES = {
  thread: { flag: 'SEED_PLAIN_INCREMENT', call: 'raise', said: 'data race' },
  address: { flag: 'SEED_SHORT_ARENA', call: 'readPast', said: 'heap-buffer-overflow' },
  undefined: { flag: 'SEED_MISALIGNED', call: 'addOne', said: /misaligned address|signed integer overflow/ },
}

const started = performance.now()
const done = { runs: 0, reports: 0, failed: 0, found: 0, missed: 0, ofNode: 0 }
for (const sanitizer of Object.keys(MISTAKES)) await testCells(sanitizer)
for (const sanitizers of [['address', 'undefined'], ['thread']]) await testInNode(sanitizers)
const seconds = Math.round((performance.now() - started) / 1_000)
console.log(
  `${done.runs} runs under sanitizers in ${seconds} s: ${done.reports} reports, ${done.failed} failed; ` +
    `${done.found} of ${done.found + done.missed} mistakes reported; ${done.ofNode} reports of Node about itself`,
)
process.exitCode = done.reports + done.failed + done.missed > 0 ? 1 : 0

async function testCells(sanitizer) {
  const folder = emptyFolder('sanitize/cells')
  const { flag, said } = MISTAKES[sanitizer]
  for (const seeds of [[], [`-D${flag}`]]) {
    const program = join(folder, `cell_test-${sanitizer}${seeds.join('')}`)
    compile([...CELL_FLAGS, ...flagsOf([sanitizer]), ...seeds, '-o', program, CELL_TEST])
    const { ended, output } = await run(program, [])
    const what = `${sanitizer}: cell_test ${seeds.join('')}`
    if (seeds.length > 0) seeded(what, output.match(said) !== null, output)
    else clean(what, ended === 0, /Sanitizer|runtime error/.test(output) ? [output] : [], output)
  }
}

async function testInNode(sanitizers) {
  note(`${sanitizers.join(', ')}: building the addon`)
  const addon = buildAddon(sanitizers)
  const reports = emptyFolder('sanitize/reports')
  const env = environmentFor(sanitizers, addon, reports)
  const wrong = buildMistakes(sanitizers)
  for (const sanitizer of sanitizers) {
    const { call, said } = MISTAKES[sanitizer]
    const { output } = await run(process.execPath, ['scripts/seeded.mjs', wrong, call], env)
    const texts = taken(reports, output)
    const isFound = texts.some((text) => text.match(said) !== null && text.includes('seeded'))
    seeded(`${sanitizer}: in Node, ${call}`, isFound, `${output}${texts.join('')}`)
  }
  for (const args of IN_NODE[sanitizers.join('-')]) {
    const { ended, output } = await run(process.execPath, args, env)
    const all = taken(reports, output).flatMap((text) =>
      text.split(/^={18}$/m).filter((part) => /\S/.test(part)),
    )
    const ours = all.filter((text) => !sanitizers.includes('thread') || isOurs(text))
    done.ofNode += all.length - ours.length
    clean(`${sanitizers.join(', ')}: in Node, ${args.join(' ')}`, ended === 0, ours, output)
  }
}

/**
 * Whether one of the two that race is ours: its innermost frame that is not of the sanitizer itself. Those further out say nothing:
 * Node has not told the sanitizer where its functions return, so frames stay there that were left long ago.
 */
function isOurs(report) {
  const isTheirCount = /^\s*ThreadSanitizer: reported \d+ warnings\s*$/.test(report)
  if (isTheirCount || report.includes('Location is file descriptor')) return false
  const accesses = report.split('\n\n').filter((part) => /(read|write) of size \d/i.test(part))
  const innermost = accesses.map((access) =>
    access.split('\n').find((line) => /^ *#\d/.test(line) && !/libsanitizer|libtsan/.test(line)),
  )
  return (
    accesses.length === 0 ||
    innermost.some((frame) => /millrace\.node|\/native\/.*\.(h|cc):/.test(frame ?? ''))
  )
}

function clean(what, hasPassed, reports, output) {
  done.runs++
  done.reports += reports.length
  if (!hasPassed) done.failed++
  note(`${what}: ${hasPassed ? 'passed' : 'FAILED'}, ${reports.length} reports`)
  for (const report of reports) note(report)
  if (!hasPassed) note(output)
}

function seeded(what, isFound, output) {
  if (isFound) done.found++
  else done.missed++
  note(`${what}: ${isFound ? 'reported, as it has to be' : `NOT REPORTED\n${output}`}`)
}

/** The reports of a run, which are gone from there afterwards. */
function taken(folder, output) {
  const texts = reportsIn(folder, output)
  for (const file of readdirSync(folder)) rmSync(join(folder, file))
  return texts
}

function buildMistakes(sanitizers) {
  const library = join(emptyFolder('sanitize/mistakes'), 'seeded.node')
  const include = `-I${join(headersPrefix() ?? '/usr', 'include/node')}`
  const source = join(root, 'native/test/seeded_addon.cc')
  compile(['-std=c++20', '-O2', '-shared', '-fPIC', ...flagsOf(sanitizers), include, '-o', library, source])
  return library
}

function compile(args) {
  const { status, stderr } = spawnSync(compiler, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
}

function note(line) {
  const seconds = Math.round((performance.now() - started) / 1_000)
  process.stderr.write(`${String(seconds).padStart(4)} s  ${line.trimEnd()}\n`)
}
