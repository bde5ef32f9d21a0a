// run: also-full
// Pools in processes of their own: how these end, and what they say where there can be no threads.
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { runNode } from '../../package/project.js'
import { root } from '../../package/root.js'
import { sized } from '../../size.js'

const program = join(root, 'build/test/engines/pool/program.js')

/** What the program has found; it must end by itself, and in order. */
async function found(
  name: string,
  args: string[] = [],
  flags: readonly string[] = [],
  env = process.env,
): Promise<unknown> {
  const { code, out, err } = await runNode([...flags, program, name, ...args], root, env)
  assert.is(code, 0, `${name}: ${out}${err}`)
  return JSON.parse(out)
}

test('a pool that was asked nothing, or has answered, does not keep its process', async () => {
  assert.is(await found('unasked'), 'made')
  assert.is(await found('idle'), 9)
})

test('an answer that is awaited keeps its process, also from a pool that had fallen asleep or ended', async () => {
  assert.equal(await found('pending'), [9, 8, 7, 3, 3])
})

test('an answer that is awaited keeps its process while the thread for it is only being started', async () => {
  assert.equal(await found('pending after a death'), ['answered'])
})

test('an idle pool leaves the processor alone', async () => {
  const share = (await found('rest')) as number
  console.log(`an idle pool of two threads takes ${(100 * share).toFixed(1)} % of a processor`)
  assert.ok(share < 0.1, `${share}`)
})

test('twenty pools in one process each answer, and close', async () => {
  assert.equal(await found('many'), { allowed: 200, threads: 20, ended: 20 })
})

test('a pool works inside a worker thread, and lets it end', async () => {
  assert.equal(await found('inside'), { said: [9, 8, 7, 3, 3], code: 0 })
})

test('a process without permission for threads is told so by createLimiter', async () => {
  const isFinal = process.allowedNodeEnvironmentFlags.has('--permission')
  const flags = [isFinal ? '--permission' : '--experimental-permission', '--allow-fs-read=*']
  const env = { ...process.env, MILLRACE_NATIVE: '0' } // nor may it load addons
  const expected = { code: 'ERR_MILLRACE_NO_THREADS', cause: 'ERR_ACCESS_DENIED' }
  assert.equal(await found('make', [], flags, env), expected)
})

test('threads that have as little memory as they may decide', async () => {
  assert.equal(await found('least'), { answered: 10_010 })
})

/** `node` options that run this in every thread of a process, before all else: no thread gets any further. */
const inEveryThread = (code: string): string[] => [
  '--import',
  `data:text/javascript,${encodeURIComponent(
    `import { isMainThread } from 'node:worker_threads'; if (!isMainThread) { ${code} }`,
  )}`,
]
const EXIT = inEveryThread('process.exit()')
/** Calls itself, as in `stress/pool-deaths/doomed.ts`, where the reason is. */
const TAKE_ALL_MEMORY = inEveryThread(`
  const branch = (depth) => (depth === 0 ? [] : [branch(depth - 1), branch(depth - 1)])
  for (const kept = []; ; ) kept.push(branch(10))`)

const LIFELESS = [
  [1, 1, 'exit', EXIT],
  [2, 2, 'exit', EXIT],
  [1, 3, 'exit', EXIT],
  [1, 1, 'run out of memory', TAKE_ALL_MEMORY],
] as const
for (const [minThreads, maxThreads, what, flags] of sized<readonly (typeof LIFELESS)[number][]>({
  quick: LIFELESS.slice(2),
  full: LIFELESS,
})) {
  test(`${minThreads} to ${maxThreads} threads that ${what} while they start: every call rejects, and no more are started`, async () => {
    assert.equal(await found('lifeless', [JSON.stringify([minThreads, maxThreads])], flags), {
      calls: { ERR_MILLRACE_NO_THREADS: 1_001 },
      later: { ERR_MILLRACE_NO_THREADS: 3 },
      more: 0,
    })
  })
}

test('close() answers what is in flight, takes no more, may be called twice, and ends the threads', async () => {
  assert.equal(await found('close'), {
    outcomes: { answered: 3_001 },
    later: { ERR_MILLRACE_CLOSED: 2 },
    wasClosed: false,
    threads: 2,
    ended: 2,
  })
})

test('threads that are ended while their pool is being closed: every call settles, and it closes', async () => {
  assert.equal(await found('killed in closing'), { settled: 3_000, isFew: true, others: {}, left: 0 })
})

test.run()
