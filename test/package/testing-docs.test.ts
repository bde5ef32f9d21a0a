// The example for node:test in docs/how-to/testing.md passes, and so does what the page says of fake timers.
// (Those for Vitest and Jest are run by hand: neither is a dependency.)
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readText, root } from './root.js'

const blocks = [...readText('docs/how-to/testing.md').matchAll(/^```js\n\/\/ (\S+)\n([\s\S]*?)^```/gm)]
const files = new Map(blocks.map(([, name, code]) => [name!, code!]))

/** Runs a test file next to `login.js`, inside the package, so that `millrace` resolves to the package itself. */
function runTest(code: string): { status: number | null; output: string } {
  const folder = join(root, 'build', `testing-docs-${process.pid}`)
  mkdirSync(folder)
  try {
    writeFileSync(join(folder, 'login.js'), files.get('login.js')!)
    writeFileSync(join(folder, 'login.test.js'), code)
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const { status, stdout } = spawnSync(process.execPath, ['--test', join(folder, 'login.test.js')], {
      encoding: 'utf8',
      timeout: 60_000,
      env,
    })
    return { status, output: stdout }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

test('there is an example for each runner', () => {
  const names = ['login.js', 'login.test.js', 'login.vitest.test.js', 'login.jest.test.js']
  assert.equal([...files.keys()], names)
})

test('the example for node:test passes', () => {
  const { status, output } = runTest(files.get('login.test.js')!)
  assert.is(status, 0, output)
})

test('fake timers do not move the default clock', () => {
  const { status, output } = runTest(`
    import assert from 'node:assert/strict'
    import { test } from 'node:test'
    import { makeLogin } from './login.js'
    test('no time passes', (t) => {
      t.mock.timers.enable()
      const login = makeLogin()
      for (let i = 0; i < 3; i++) login.mayTry('alice')
      t.mock.timers.tick(16 * 60_000)
      assert.equal(login.mayTry('alice'), false)
    })`)
  assert.is(status, 0, output)
})

test.run()
