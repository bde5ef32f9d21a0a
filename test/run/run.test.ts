// run: typescript
// Tests the test runner on a package whose test files fail in every way.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { until } from '../limiter/support.js'
import { type Outcome, runNode } from '../package/project.js'
import { root } from '../package/root.js'

const folder = mkdtempSync(join(tmpdir(), 'millrace-run-'))
test.after(() => rmSync(folder, { recursive: true }))

const RUNNER = join(root, 'build/test/run.js')
const HEAD = "import { spawn } from 'node:child_process'\nimport { test } from 'uvu'\n"
/** Starts a process that does not exit, and writes its id to a file. */
const START_CHILD = `
  import { writeFileSync } from 'node:fs'
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' })
  writeFileSync(import.meta.filename + '.pid', String(child.pid))`
const FILES = {
  'build/test/good.test.js':
    "console.log('note: on a stand-in'); console.log('not run: a server is missing'); test('a', () => {}); test('b', () => {}); test.skip('c', () => {}); test.run()",
  'build/test/bad/fails.test.js':
    "// run: own\ntest('a', () => { throw new Error('failed on purpose') }); test.run()",
  'build/test/bad/ends.test.js':
    "// run: own\ntest('a', () => {}); test.run(); process.on('exit', () => process.exit(7))",
  'build/test/bad/turns.test.js':
    "// run: own\ntest('a', () => {}); test.run(); setTimeout(() => { test('b', () => {}); test.run() }, 20)",
  'build/test/bad/empty.test.js': '// run: own\ntest.run()',
  'build/test/bad/lingers.test.js': "test('a', () => {}); test.run(); setInterval(() => {}, 1_000)",
  'build/test/many/good.test.js': "test('a', () => { globalThis.met = true }); test.run()",
  'build/test/many/late.test.js': "test('b', () => { if (!met) throw new Error('alone') }); test.run()",
  'build/test/worse/fails.test.js': "test('a', () => { throw new Error('first') }); test.run()",
  'build/test/worse/forgets.test.js': "test('a', () => { throw new Error('not seen') })",
  'build/test/worse/good.test.js': "test('a', () => {}); test.run()",
  'build/test/bad/hangs.test.js': `${START_CHILD}; test('a', () => new Promise(() => {})); test.run()`,
  'build/test/bad/leaves.test.js': `${START_CHILD}; child.unref(); test('a', () => {}); test.run()`,
  'build/test/large.test.js': "// run: full\ntest('a', () => {}); test.run()",
  'build/test/both.test.js':
    "// run: also-full\ntest(process.env.MILLRACE_TESTS, () => { throw new Error('no') }); test.run()",
  'tool/build/test/tools.test.js': "test('a', () => {}); test.run()",
}
for (const [file, code] of Object.entries(FILES)) {
  mkdirSync(dirname(join(folder, file)), { recursive: true })
  writeFileSync(
    join(folder, file),
    `${code.startsWith('//') ? `${code.split('\n')[0]}\n` : ''}${HEAD}${code}`,
  )
}
writeFileSync(join(folder, 'package.json'), '{ "type": "module", "workspaces": [".", "tool"] }')
writeFileSync(join(folder, 'tool/package.json'), '{ "type": "module" }')
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))

const run = (...args: string[]): Promise<Outcome> =>
  runNode([RUNNER, '--root', folder, ...args], root, {
    ...process.env,
    MILLRACE_NATIVE: '0',
  })

/** Whether the process that the test file started is alive; a zombie is not. */
function isChildAlive(file: string): boolean {
  const pid = Number(readFileSync(join(folder, `${file}.pid`), 'utf8'))
  try {
    process.kill(pid, 0)
    return process.platform !== 'linux' || !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

test('patterns select files, also of workspaces; the last line counts skipped tests', async () => {
  const { code, out } = await run('^good', 'tools')
  assert.is(code, 0, out)
  assert.match(out, /^ok {3}good \(2 of 2, 1 skipped, /m)
  assert.match(out, /^ {5}good on a stand-in\n {5}good not run: a server is missing$/m)
  assert.match(out, /^ok {3}tool\/tools \(1 of 1, /m)
  assert.match(out, /^3 passed, 0 failed, 1 skipped\n$/m)
  assert.not.match(out, 'failed:')
})

test('a failed test, a non-zero exit code and a file without tests are reported as failures', async () => {
  const { code, out } = await run('bad/(fails|ends|empty)')
  assert.is(code, 1)
  assert.match(out, /^FAIL bad\/fails \(0 of 1, /m)
  assert.match(out, 'failed on purpose')
  assert.match(out, 'bad/ends exited with 7, outside any test')
  assert.match(out, 'bad/empty has no tests')
  assert.match(out, /\nfailed: bad\/empty, bad\/ends, bad\/fails\n1 passed, 3 failed, 0 skipped\n$/)
})

test('a file whose tests run in several turns, some of them twice or never, is reported', async () => {
  const { code, out } = await run('bad/turns')
  assert.is(code, 1)
  assert.match(out, 'bad/turns ran its tests in several turns')
})

test('files of a folder share a process, and the files that fail are named', async () => {
  const { code, out } = await run('many/')
  assert.is(code, 0, out)
  assert.match(out, /^ok {3}many\/\{good, late\} \(2 of 2, /m)
  const worse = await run('worse/(fails|good)')
  assert.match(worse.out, /\nfailed: worse\/fails\n1 passed, 1 failed, 0 skipped\n$/)
  const forgotten = await run('worse/(forgets|good)')
  assert.match(forgotten.out, 'worse/{forgets, good} has no tests in worse/forgets')
  assert.match(forgotten.out, /\n1 passed, 2 failed, 0 skipped\n$/)
})

test('a file that does not end after its tests is killed, and reported', async () => {
  const { code, out } = await run('--linger', '1', 'lingers')
  assert.is(code, 1)
  assert.match(out, 'bad/lingers did not end by itself after its tests, and was killed')
  assert.match(out, /\nfailed: bad\/lingers\n1 passed, 1 failed, 0 skipped\n$/)
})

if (process.platform === 'linux')
  test('the processor time of a run has that of its processes', async () => {
    const { out } = await run('^good', 'tools')
    assert.match(out, /^ok {3}good \(2 of 2, 1 skipped, .* s, processor \d+\.\d s\)$/m)
    assert.match(out, /^processor time of \d+ runs: \d+ s$/m)
  })

test('a file that hangs is killed with its processes and reported', async () => {
  const { code, out } = await run('--limit', '3', 'hangs')
  assert.is(code, 1)
  assert.match(out, /bad\/hangs timed out: it and its processes were killed after \d+ s/)
  assert.match(out, /\n0 passed, 1 failed, 0 skipped\n$/)
  assert.not(isChildAlive('build/test/bad/hangs.test.js'))
})

for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
  test(`when ${signal} kills the runner, its test files and their processes exit`, async () => {
    const pid = join(folder, 'build/test/bad/hangs.test.js.pid')
    rmSync(pid, { force: true })
    const env = { ...process.env, MILLRACE_NATIVE: '0' }
    const runner = spawn(process.execPath, [RUNNER, '--root', folder, 'hangs'], { env, stdio: 'ignore' })
    const ended = once(runner, 'exit')
    await until(() => existsSync(pid) && readFileSync(pid, 'utf8') !== '', 'the start of the file that hangs')
    runner.kill(signal)
    assert.equal(await ended, [null, signal])
    await until(() => !isChildAlive('build/test/bad/hangs.test.js'), 'the end of its process')
  })
}

if (process.platform === 'linux')
  test('a process left running is killed and fails its file', async () => {
    const { code, out } = await run('leaves')
    assert.is(code, 1)
    assert.match(out, /bad\/leaves left processes running, which were killed: .*setInterval/)
    assert.match(out, /\n1 passed, 1 failed, 0 skipped\n$/)
    assert.not(isChildAlive('build/test/bad/leaves.test.js'))
  })

test('quick runs omit full tests, and full runs repeat some quick tests at full size', async () => {
  const quick = await run('large', 'both')
  assert.match(quick.out, 'FAIL both')
  assert.match(quick.out, '"quick"')
  assert.match(quick.out, 'npm run test:full also runs: both, large')
  const full = await run('--full')
  assert.match(full.out, '"full"')
  assert.match(full.out, /^ok {3}large \(1 of 1, /m)
  assert.match(full.out, /\n1 passed, 1 failed, 0 skipped\n$/)
})

test('an unknown mark is an error', async () => {
  const file = join(folder, 'build/test/marked.test.js')
  writeFileSync(file, '// run: sometimes\n')
  const { code, err } = await run('good')
  rmSync(file)
  assert.is(code, 1)
  assert.match(err, "unknown mark 'sometimes'")
})

test.run()
