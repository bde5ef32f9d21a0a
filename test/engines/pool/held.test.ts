// What takes threads that are held at one very step: each in a process of its own.
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { runNode } from '../../package/project.js'
import { root } from '../../package/root.js'

const built = (name: string) => join(root, 'build/test/engines/pool', name)

async function found(name: string): Promise<unknown> {
  const { code, out, err } = await runNode(
    ['--import', built('held.js'), built('held-program.js'), name],
    root,
  )
  assert.is(code, 0, `${name}: ${out}${err}`)
  return JSON.parse(out)
}

test('a pool is ready once each of the threads that stay has answered', async () => {
  assert.equal(await found('ready'), { before: 0, after: 2, threads: 2 })
})

test('the end of a thread that had handed over its ring costs nothing of what the next one is at', async () => {
  assert.equal(await found('handed over'), [true, 2])
})

test('threads that die, however often, are replaced where each has answered since the last death', async () => {
  assert.equal(await found('mortal'), { remaining: 10_000 - 28, isAll: true })
})

test('a pool that grew deals keys to `minThreads` again after a second without requests', async () => {
  assert.is(await found('shrink'), 1)
})

test('a key that is asked about goes to no other ring, however long that takes', async () => {
  assert.equal(await found('no shrinking under way'), [true, 1])
})

test.run()
