// run: also-full, modules
// The addon's entry points for files, with arguments that Millrace never passes.
import { closeSync, openSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { inspect } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Worker } from 'node:worker_threads'
import { createLimiter } from 'millrace'
import * as assert from 'uvu/assert'
import { neededAddon } from '#millrace/native/addon.js'
import type { NativeFiles } from '#millrace/native/files.js'
import { until } from '../limiter/support.js'
import { test } from '../native/addon-test.js'
import { folder } from '../shared-file/processes.js'
import { sized } from '../size.js'

const at = folder()
const files = process.env.MILLRACE_NATIVE === '0' ? ({} as NativeFiles) : neededAddon('test', '').files!
const CALLS = ['allocate', 'lock', 'shareLock', 'map'] as const
type Loose = Record<(typeof CALLS)[number], (...args: unknown[]) => unknown>
const loose = files as unknown as Loose

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function open(name: string, bytes: number): number {
  writeFileSync(at(name), Buffer.alloc(bytes), { mode: 0o600 })
  return openSync(at(name), 'r+')
}

test('arguments of wrong types, or out of range, throw', () => {
  const fd = open('arguments', 4_096)
  const odd = [
    undefined,
    null,
    -1,
    1.5,
    Number.NaN,
    Infinity,
    2 ** 53,
    2 ** 31,
    '3',
    {},
    [],
    3n,
    Symbol('s'),
    () => {},
  ]
  for (const name of CALLS) {
    for (const value of odd)
      assert.throws(() => loose[name](value, 1, 1), undefined, `${name}(${inspect(value)}, …)`)
    assert.throws(() => loose[name](), undefined, `${name}()`)
  }
  for (const value of odd.filter((each) => each !== 2 ** 31)) {
    assert.throws(() => loose.allocate(fd, value), undefined, inspect(value))
    assert.throws(() => loose.map(fd, value), undefined, inspect(value))
    assert.throws(() => loose.lock(fd, value), undefined, inspect(value))
  }
  closeSync(fd)
})

test('a descriptor that is not open throws the system’s error with its code', () => {
  const acts = {
    allocate: [999_999, 1],
    lock: [999_999, true],
    shareLock: [999_999],
    map: [999_999, 1],
  }
  for (const [name, args] of Object.entries(acts)) {
    assert.throws(
      () => loose[name as keyof Loose](...args),
      (error: NodeJS.ErrnoException) => error.code === 'EBADF' && error.syscall !== undefined,
      name,
    )
  }
})

test('mapping beyond the end of the file throws: an access there would kill the process', () => {
  const fd = open('short', 4_096)
  for (const bytes of [4_097, 2 ** 40, 2 ** 53 - 1]) assert.throws(() => files.map(fd, bytes), /mmap/)
  const pipe = openSync('/dev/null', 'r+')
  assert.throws(() => files.map(pipe, 1), /mmap/)
  for (const each of [fd, pipe]) closeSync(each)
})

test('a write to a mapping is in the file and in all its mappings', () => {
  const fd = open('mapped', 4_096)
  const [a, b] = [files.map(fd, 4_096), files.map(fd, 4_096)].map(({ buffer }) => new Int32Array(buffer))
  closeSync(fd)
  Atomics.store(a!, 7, 42)
  assert.is(Atomics.compareExchange(b!, 7, 42, 43), 42)
  assert.is(Atomics.load(a!, 7), 43)
  assert.is(readFileSync(at('mapped')).readInt32LE(28), 43)
  truncateSync(at('mapped'), 4_096)
})

test('the lock of one mapping excludes another, in one process too, and ends with the mapping', () => {
  const [first, second] = [open('locked', 4_096), openSync(at('locked'), 'r+')]
  assert.is(files.lock(first, false), 'alone')
  assert.is(files.lock(second, false), 'busy')
  assert.is(files.shareLock(first), 'shared')
  assert.is(files.lock(second, false), 'shared')
  assert.is(files.lock(second, true), 'busy')
  closeSync(first)
  assert.is(files.lock(second, true), 'alone')
  closeSync(second)
})

function mappingsLeft(): number {
  collect()
  return readFileSync('/proc/self/maps', 'utf8').split(at('collected')).length - 1
}
const isLinux = process.platform === 'linux' ? test : test.skip
isLinux('a mapping lasts as long as something refers to its memory, and no longer', async () => {
  const fd = open('collected', 4_096)
  let view: Int32Array | undefined = new Int32Array(files.map(fd, 4_096).buffer, 8, 4)
  for (let i = 0; i < 50; i++) files.map(fd, 4_096)
  closeSync(fd)
  await until(() => mappingsLeft() === 1, 'the fifty to be unmapped')
  view[0] = 5
  assert.is(view[0], 5)
  view = undefined
  await until(() => mappingsLeft() === 0, 'the last to be unmapped')
})

test('the memory of a limiter in a file is not detached by transferring it', () => {
  const limiter = createLimiter({ limit: 2, window: '1m', maxKeys: 10, shared: { file: at('kept') } })
  const fd = openSync(at('kept'), 'r+')
  const { buffer } = files.map(fd, 4_096)
  closeSync(fd)
  try {
    structuredClone(buffer, { transfer: [buffer] })
  } catch {
    // newer versions of Node.js throw
  }
  assert.is(buffer.byteLength, 4_096)
  assert.ok(limiter.check('key').allowed)
})

const ROUNDS = sized({ quick: 3, full: 12 })
const THREAD = `
  const { workerData } = require('node:worker_threads')
  import('millrace').then(async ({ openLimiter, attachLimiter }) => {
    const limiter = workerData.share
      ? attachLimiter(workerData.share)
      : await openLimiter({ limit: 1_000, window: '1h', maxKeys: 100, shared: { file: workerData.file } })
    limiter.check('key')
    if (workerData.how === 'exit') process.exit()
    if (workerData.how === 'close') limiter.close()
    if (workerData.how === 'terminate') for (;;) limiter.check('another')
  })`

test('threads that load the addon leave no mapping and no lock, however they end', async () => {
  const file = at('threads')
  for (let round = 0; round < ROUNDS; round++) {
    const hows = ['end', 'exit', 'close', 'terminate']
    await Promise.all(
      hows.map(async (how) => {
        const worker = new Worker(THREAD, { eval: true, workerData: { file, how } })
        const ended = new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject))
        if (how === 'terminate') await worker.terminate()
        await ended
      }),
    )
  }
  const fd = openSync(file, 'r+')
  assert.is(files.lock(fd, true), 'alone')
  closeSync(fd)
  const limiter = createLimiter({ limit: 1_000, window: '1h', maxKeys: 100, shared: { file } })
  const used = limiter.usage('key') // terminated threads may not have decided
  assert.ok(used >= 3 * ROUNDS && used <= 4 * ROUNDS, `${used}`)
  await limiter.close()
})

test.run()
