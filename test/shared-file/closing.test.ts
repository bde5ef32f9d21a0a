// close() of a limiter in a file leaves nothing behind.
// run: addon, also-full, modules
import { closeSync, existsSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Worker } from 'node:worker_threads'
import { attachLimiter, createLimiter, type LimiterOptions } from 'millrace'
import * as assert from 'uvu/assert'
import { neededAddon } from '#millrace/native/addon.js'
import type { NativeFiles } from '#millrace/native/files.js'
import { assertRaises, assertRejects, turn } from '../limiter/support.js'
import { test } from '../native/addon-test.js'
import { sized } from '../size.js'
import { folder } from './processes.js'

const at = folder()
const options = (file: string) => ({ limit: 10_000, window: '1h' as const, maxKeys: 100, shared: { file } })
const open = (file: string, more: Partial<LimiterOptions> = {}) =>
  createLimiter({ ...options(file), ...more })
const files = process.env.MILLRACE_NATIVE === '0' ? ({} as NativeFiles) : neededAddon('test', '').files!

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** This process's descriptors and mappings of the file, without a garbage collection. */
function held(file: string): { descriptors: number; mappings: number } {
  const maps = readFileSync('/proc/self/maps', 'utf8')
  return { descriptors: readdirSync('/proc/self/fd').length, mappings: maps.split(file).length - 1 }
}

const onLinux = existsSync('/proc/self/maps') ? test : test.skip

const CYCLES = sized({ quick: 300, full: 5_000 })
onLinux('thousands of limiters opened and closed leave no descriptor and no mapping', async () => {
  const file = at('cycles')
  await open(file).close()
  const before = held(file)
  for (let i = 0; i < CYCLES; i++) {
    const limiter = open(file)
    limiter.check('key')
    if (i === 0) assert.is(held(file).mappings, 1)
    await limiter.close()
  }
  assert.equal(held(file), { ...before, mappings: 0 })
  collect()
  const limiter = open(file)
  assert.is(limiter.usage('key'), CYCLES)
  await limiter.close()
})

onLinux('a pool that is closed leaves none in any of its threads', async () => {
  const file = at('pools')
  for (let i = 0; i < 3; i++) {
    const limiter = createLimiter({ ...options(file), engine: 'pool', pool: { minThreads: 2 } })
    await Promise.all(['a', 'b', 'c', 'd'].map((key) => limiter.check(key)))
    assert.ok(held(file).mappings >= 2)
    await limiter.close()
    assert.is(held(file).mappings, 0)
  }
})

onLinux('a share that cannot be attached leaves none', async () => {
  const file = at('shares')
  const limiter = open(file)
  const share = limiter.share()
  const before = held(file)
  for (let i = 0; i < 20; i++) {
    const wrong = { ...share, rule: 'another' }
    assertRaises(() => attachLimiter(wrong), 'ERR_MILLRACE_SHARED_MISMATCH', 'name')
  }
  assert.equal(held(file), before)
  await limiter.close()
})

test('after close every method throws, pending waits reject, and decisions stay readable', async () => {
  const limiter = open(at('after'), { limit: 1 })
  const handle = limiter.handle('key')
  const packed = limiter.pack(['key'])
  const first = limiter.check(handle)
  const refused = limiter.check(handle)
  const batch = limiter.checkMany(Array(20).fill('key'))
  const waiting = limiter.wait('key')
  await limiter.close()
  await assertRejects(() => waiting, 'ERR_MILLRACE_CLOSED', 'limiter')
  const acts: (() => unknown)[] = [
    () => limiter.check('key'),
    () => limiter.check(handle),
    () => limiter.peek('key'),
    () => limiter.checkMany(packed),
    () => limiter.usage('key'),
    () => limiter.refund(first),
    () => limiter.refund('key', 1),
    () => limiter.block('key', '1s'),
    () => limiter.unblock('key'),
    () => limiter.clear('key'),
    () => limiter.penalize('key', 1),
    () => limiter.update('default', { limit: 2 }),
    () => limiter.stats(),
    () => limiter.share(),
    () => limiter.rule,
  ]
  for (const act of acts) assertRaises(act, 'ERR_MILLRACE_CLOSED', 'limiter', String(act))
  assert.equal([first.allowed, refused.allowed, batch.allowed[19]], [true, false, 0])
})

test('a call whose options close the limiter throws like one on a closed limiter', async () => {
  const waiting = open(at('getters'))
  const options = {
    get cost() {
      void waiting.close()
      return 1
    },
  }
  await assertRejects(() => waiting.wait('key', options), 'ERR_MILLRACE_CLOSED', 'limiter')
  const deciding = open(at('getters'))
  const costs = {
    length: 1,
    get 0() {
      void deciding.close()
      return 1
    },
  }
  assertRaises(() => deciding.checkMany(['key'], costs), 'ERR_MILLRACE_CLOSED', 'limiter')
})

test('other threads and other limiters decide on after a close', async () => {
  const file = at('others')
  const [closed, other] = [open(file), open(file)]
  const worker = new Worker(
    `const { parentPort, workerData } = require('node:worker_threads')
     import('millrace').then(({ attachLimiter }) => {
       const limiter = attachLimiter(workerData)
       parentPort.on('message', () => {
         limiter.check('key')
         parentPort.postMessage(limiter.usage('key'))
       })
       parentPort.postMessage('ready')
     })`,
    { eval: true, workerData: closed.share() },
  )
  const nextMessage = () => new Promise((resolve) => worker.once('message', resolve))
  assert.is(await nextMessage(), 'ready')
  await closed.close()
  worker.postMessage('')
  assert.is(await nextMessage(), 1)
  other.check('key')
  assert.is(other.usage('key'), 2)
  await worker.terminate()
  await other.close()
})

function map(name: string) {
  writeFileSync(at(name), Buffer.alloc(4_096), { mode: 0o600 })
  const fd = openSync(at(name), 'r+')
  const mapping = files.map(fd, 4_096)
  closeSync(fd)
  return mapping
}

test('ending a mapping detaches its buffer, may be repeated, and affects no other', () => {
  const [one, other] = [map('one'), map('other')]
  const [words, kept] = [new Int32Array(one.buffer), new Int32Array(other.buffer)]
  for (const wrong of [other.buffer, new ArrayBuffer(4_096), undefined, {}, 5]) {
    assert.throws(() => one.unmap(wrong as ArrayBuffer), /buffer of this mapping/)
  }
  words[0] = 1
  one.unmap(one.buffer)
  assert.equal([words.length, words[0], one.buffer.byteLength], [0, undefined, 0])
  assert.throws(() => Atomics.load(words, 0))
  one.unmap(one.buffer)
  one.unmap(other.buffer)
  kept[0] = 7
  assert.is(kept[0], 7)
  collect()
  assert.is(kept[0], 7)
})

onLinux(
  'the descriptor of a mapping that has ended is not closed by a second end, or a collection',
  async () => {
    const ended = map('ended')
    ended.unmap(ended.buffer)
    const others = [openSync(at('ended'), 'r'), openSync(at('ended'), 'r')]
    assert.ok(others.includes(ended.fd), `${others} have its number, ${ended.fd}, now`)
    ended.unmap(ended.buffer)
    collect()
    await turn()
    for (const fd of others) {
      assert.ok(existsSync(`/proc/self/fd/${fd}`))
      closeSync(fd)
    }
  },
)

test.run()
