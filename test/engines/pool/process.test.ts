// run: also-full
// Pools in processes of their own: how the processes end, and what happens where no thread can start.
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { runNode } from '../../package/project.js'
import { root } from '../../package/root.js'
import { atFullSize, sized } from '../../size.js'

const program = join(root, 'build/test/engines/pool/program.js')

/** Runs a program and returns its result. The program must end by itself, with code 0. */
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

test('a pool without pending calls does not keep its process alive', async () => {
  assert.is(await found('unused'), 'made')
  assert.is(await found('idle'), 9)
})

test('a pending reply keeps its process alive, also from a pool whose threads sleep or have ended', async () => {
  assert.equal(await found('pending'), [9, 8, 7, 3, 3])
})

test('a pending reply keeps its process alive while its thread is still starting', async () => {
  assert.equal(await found('pending after a death'), ['answered'])
})

test('an idle pool uses almost no processor time', async () => {
  const share = (await found('rest')) as number
  console.log(`an idle pool of two threads uses ${(100 * share).toFixed(1)} % of a processor`)
  assert.ok(share < 0.1, `${share}`)
})

const POOLS = sized({ quick: 3, full: 20 })
test(`${POOLS} pools in one process all reply, and close`, async () => {
  const expected = { allowed: 10 * POOLS, threads: POOLS, ended: POOLS }
  assert.equal(await found('many', [`${POOLS}`]), expected)
})

atFullSize('a pool works inside a worker thread, and lets it end', async () => {
  assert.equal(await found('inside'), { result: [9, 8, 7, 3, 3], code: 0 })
})

test('createLimiter reports that the process has no permission for threads', async () => {
  const isFinal = process.allowedNodeEnvironmentFlags.has('--permission')
  const flags = [isFinal ? '--permission' : '--experimental-permission', '--allow-fs-read=*']
  const env = { ...process.env, MILLRACE_NATIVE: '0' } // addons are not permitted either
  const expected = { code: 'ERR_MILLRACE_NO_THREADS', cause: 'ERR_ACCESS_DENIED' }
  assert.equal(await found('make', [], flags, env), expected)
})

atFullSize('threads with the least permitted memory decide', async () => {
  assert.equal(await found('least'), { answered: 10_010 })
})

/**
 * `node` options that run this code in every thread of a process before anything else, so no thread starts
 * up.
 */
const inEveryThread = (code: string): string[] => [
  '--import',
  `data:text/javascript,${encodeURIComponent(
    `import { isMainThread } from 'node:worker_threads'; if (!isMainThread) { ${code} }`,
  )}`,
]
const EXIT = inEveryThread('process.exit()')
/** A function that calls itself, as in `stress/pool-deaths/doomed.ts`, which has the reason. */
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
  quick: LIFELESS.slice(2, 3),
  full: LIFELESS,
})) {
  test(`${minThreads} to ${maxThreads} threads that ${what} while they start: every call rejects, and no further threads start`, async () => {
    assert.equal(await found('lifeless', [JSON.stringify([minThreads, maxThreads])], flags), {
      calls: { ERR_MILLRACE_NO_THREADS: 1_001 },
      later: { ERR_MILLRACE_NO_THREADS: 3 },
      more: 0,
    })
  })
}

test('close() answers calls in flight, accepts no more, may be called twice, and ends the threads', async () => {
  assert.equal(await found('close'), {
    outcomes: { answered: 3_001 },
    later: { ERR_MILLRACE_CLOSED: 2 },
    wasClosed: false,
    threads: 2,
    ended: 2,
  })
})

test('if all threads are terminated during close, every call settles and the pool closes', async () => {
  assert.equal(await found('killed in closing'), { settled: 3_000, isFew: true, others: {}, left: 0 })
})

test.run()
