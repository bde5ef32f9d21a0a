// run: also-full
// Tests that hold a thread at one exact step. Each runs in a process of its own.
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { runNode } from '../../package/project.js'
import { root } from '../../package/root.js'
import { atFullSize } from '../../size.js'

const built = (name: string) => join(root, 'build/test/engines/pool', name)

async function found(name: string): Promise<unknown> {
  const { code, out, err } = await runNode(
    ['--import', built('held.js'), built('held-program.js'), name],
    root,
  )
  assert.is(code, 0, `${name}: ${out}${err}`)
  return JSON.parse(out)
}

test('a pool is ready once each of its `minThreads` threads has replied', async () => {
  assert.equal(await found('ready'), { before: 0, after: 2, threads: 2 })
})

test('the exit of a thread whose ring has a new server does not fail the new server’s request in flight', async () => {
  assert.equal(await found('handed over'), [true, 2])
})

atFullSize(
  'any number of dead threads are replaced, as long as each replied after the previous death',
  async () => {
    assert.equal(await found('mortal'), { remaining: 10_000 - 28, isAll: true })
  },
)

atFullSize(
  'a pool that grew sends keys to `minThreads` rings again after a second without requests',
  async () => {
    assert.is(await found('shrink'), 1)
  },
)

atFullSize('a key with a request in flight moves to no other ring', async () => {
  assert.equal(await found('no shrinking under way'), [true, 1])
})

test.run()
