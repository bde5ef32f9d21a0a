// run: full
// Tests that hold a thread at one exact step. Each runs in a process of its own.
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { runNode } from '../../package/project.js'
import { root } from '../../package/root.js'
import type { Left } from './held-program.js'

const built = (name: string) => join(root, 'build/test/engines/pool', name)

async function found(name: string, stride = 1, env = process.env): Promise<unknown> {
  const { code, out, err } = await runNode(
    ['--import', built('held.js'), built('held-program.js'), name, `${stride}`],
    root,
    env,
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

test('a thread that dies at any step of a decision by two rules leaves at most its charge, of the first or of both', async () => {
  // The addon makes no calls of `Atomics` in JavaScript, which are the steps.
  const env = { ...process.env, MILLRACE_NATIVE: '0' }
  const deaths = (await found('between rules', 1, env)) as Record<string, Left[]>
  const { unknown, known, refused } = deaths
  for (const [all, outcome, leaves] of [
    [unknown, 'admitted', ['0,0', '2,0', '2,2']],
    [known, 'admitted', ['1,1', '3,1', '3,3']],
    [refused, 'refused', ['0,20', '2,20', '0,20']],
  ] as const) {
    const uses = all!.map(({ used }) => used.join())
    for (const used of uses) assert.ok((leaves as readonly string[]).includes(used), `${used} for ${outcome}`)
    assert.equal([all!.at(-1)!.outcome, uses.at(-1)], [outcome, leaves[2]])
    assert.ok(all!.slice(0, -1).every((one) => one.outcome === 'lost') && all!.length > 2)
    assert.ok(all!.every(({ isRestAdmitted }) => isRestAdmitted))
  }
  const between = [...unknown!, ...refused!].map(({ used }) => used.join())
  for (const used of ['2,0', '2,20']) assert.ok(between.includes(used), 'deaths between the two rules')
})

test('any number of dead threads are replaced, as long as each replied after the previous death', async () => {
  assert.equal(await found('mortal'), { remaining: 10_000 - 28, isAll: true })
})

test('a pool that grew sends keys to `minThreads` rings again after a second without requests', async () => {
  assert.is(await found('shrink'), 1)
})

test('a key with a request in flight moves to no other ring', async () => {
  assert.equal(await found('no shrinking under way'), [true, 1])
})

test.run()
