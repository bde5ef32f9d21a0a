// npm run dev -- test:sanitize: runs the C++ protocol and the addon under ThreadSanitizer, AddressSanitizer and
// UBSan (of GCC, on Linux); `--whole` runs more of it, `--share` a part that takes a few minutes. Passes if no sanitizer
// reports anything, and if each reports the faults that are made for it.
//
// The test of the C++ protocol runs under each sanitizer by itself. The addon runs in Node, which is not
// instrumented. That limits the sanitizers as follows:
//
//   AddressSanitizer, UBSan   No limit for the addon's own accesses. The arrays that Node allocates have
//                             guarded borders; growable arrays and mapped files have none.
//   ThreadSanitizer           It does not see JavaScript's accesses, so it only finds races between two C++
//                             calls. That both sides' operations have the same strength is shown by an
//                             argument (native/words.h) and by tests (test/native/both-sides). It does not
//                             see how Node synchronises its own threads, and reports races inside of Node,
//                             which are counted and ignored. A report counts if the addon is on one of its
//                             stacks. A report about a file descriptor does not count, because Node recycles
//                             descriptors in an order that it does not see.
//
// On x64 the vector loads of Table::waysNamed are plain accesses of words that others write. ThreadSanitizer
// checks a loop of relaxed loads instead, so this one function is not checked as built.
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
const isWhole = process.argv.includes('--whole')
const isShare = process.argv.includes('--share')
const SHORT = isWhole ? [] : ['-DSHORT_TEST']
/** Runs that take minutes under a sanitizer. */
const whole = (...args) => (isWhole ? [args] : [])
const IN_NODE_SHARE = {
  'address-undefined': [
    test('native/arguments'),
    ['build/test/native/fuzz/main.js', '--minutes', '0', '--seconds', '5', '--seed', '1'],
  ],
}
const IN_NODE_ALL = {
  thread: ['native/arguments', 'native/both-sides', 'shared-file/mapped-file'].map(test),
  'address-undefined': [
    ...[
      'native/arguments',
      'native/fuzz/fuzz',
      'native/both-sides',
      'native/parity',
      'shared-file/mapped-file',
    ].map(test),
    [
      'build/test/native/fuzz/main.js',
      '--minutes',
      '0',
      '--seconds',
      '30',
      ...(isWhole ? [] : ['--seed', '1']),
    ],
    ...whole('build/test/native/main.js', '--operations', '1000000', '--seed', '2'),
    ['build/test/stress/processes/main.js', '--seconds', isWhole ? '30' : '5'],
  ],
}
const IN_NODE = isShare ? IN_NODE_SHARE : IN_NODE_ALL
/** The share has the C++ test under ThreadSanitizer, and the addon in Node under the other two. */
const IN_CELLS = isShare ? ['thread'] : ['thread', 'address', 'undefined']
/**
 * The faults that each sanitizer has to report: in C++ by -D, in Node by a function; and the text of the
 * report.
 */
const MISTAKES = {
  thread: { flag: 'SEED_PLAIN_INCREMENT', call: 'raise', said: 'data race' },
  address: { flag: 'SEED_SHORT_ARENA', call: 'readPast', said: 'heap-buffer-overflow' },
  undefined: { flag: 'SEED_MISALIGNED', call: 'addOne', said: /misaligned address|signed integer overflow/ },
}

const started = performance.now()
const done = { runs: 0, reports: 0, failed: 0, found: 0, missed: 0, ofNode: 0 }
await Promise.all([testAllCells(), testAllInNode()])
const seconds = Math.round((performance.now() - started) / 1_000)
console.log(
  `${done.runs} runs under sanitizers in ${seconds} s: ${done.reports} reports, ${done.failed} failed; ` +
    `${done.found} of ${done.found + done.missed} mistakes reported; ${done.ofNode} reports of Node about itself`,
)
process.exitCode = done.reports + done.failed + done.missed > 0 ? 1 : 0

async function testAllCells() {
  for (const sanitizer of IN_CELLS) await testCells(sanitizer)
}

async function testAllInNode() {
  for (const sanitizers of Object.keys(IN_NODE)) await testInNode(sanitizers.split('-'))
}

async function testCells(sanitizer) {
  const folder = emptyFolder('sanitize/cells')
  const { flag, said } = MISTAKES[sanitizer]
  for (const seeds of [[], [`-D${flag}`]]) {
    const program = join(folder, `cell_test-${sanitizer}${seeds.join('')}`)
    await compile([...CELL_FLAGS, ...SHORT, ...flagsOf([sanitizer]), ...seeds, '-o', program, CELL_TEST])
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
  const env = { ...environmentFor(sanitizers, addon, reports), MILLRACE_TESTS: isWhole ? 'long' : 'quick' }
  const wrong = await buildMistakes(sanitizers)
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
 * Whether one of the two racing accesses is the addon's. Only the innermost frame outside of the sanitizer
 * counts. The outer frames may be stale, because Node does not tell the sanitizer when its functions return.
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

/** Returns the reports of a run and deletes their files. */
function taken(folder, output) {
  const texts = reportsIn(folder, output)
  for (const file of readdirSync(folder)) rmSync(join(folder, file))
  return texts
}

async function buildMistakes(sanitizers) {
  const library = join(emptyFolder('sanitize/mistakes'), 'seeded.node')
  const include = `-I${join(headersPrefix() ?? '/usr', 'include/node')}`
  const source = join(root, 'native/test/seeded_addon.cc')
  await compile([
    '-std=c++20',
    '-O2',
    '-shared',
    '-fPIC',
    ...flagsOf(sanitizers),
    include,
    '-o',
    library,
    source,
  ])
  return library
}

async function compile(args) {
  const { ended, output } = await run(compiler, args)
  if (ended !== 0) throw new Error(output)
}

function note(line) {
  const seconds = Math.round((performance.now() - started) / 1_000)
  process.stderr.write(`${String(seconds).padStart(4)} s  ${line.trimEnd()}\n`)
}
