// run: also-full
import { existsSync, statSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { attachLimiter, createLimiter, type LimiterOptions, type LimiterStats } from 'millrace'
import * as assert from 'uvu/assert'
import { assertRaises } from '../limiter/support.js'
import { test } from '../native/addon-test.js'
import { sized } from '../size.js'
import { folder, Member, withMembers } from './processes.js'

const at = folder()
const options = (file: string, more: Partial<LimiterOptions> = {}): LimiterOptions => ({
  limit: 10,
  window: '1h',
  maxKeys: 100,
  shared: { file },
  ...more,
})
const sum = (counts: number[]) => counts.reduce((a, b) => a + b)

test('processes that open one file share one limit', () =>
  withMembers(3, async (members) => {
    for (const member of members) await member.open(options(at('one')))
    const admitted: number[] = []
    for (const member of members) admitted.push(await member.check('key', 4))
    assert.equal(admitted, [4, 4, 2])
    assert.is(await members[0]!.call('usage', 'key'), 10)
  }))

test('own counts of processes are what each was answered, and add up to the shared ones, which all have', () =>
  withMembers(4, async (members) => {
    const rules = [
      { name: 'minute', limit: 300, window: '1m' },
      { name: 'hour', limit: 200, window: '1h' },
    ] as const
    const kinds = [
      options(at('counts'), { limit: 300 }),
      { rules, maxKeys: 100, shared: { file: at('rules') } },
    ]
    for (const kind of kinds) {
      for (const member of members) await member.open(kind)
      await members[0]!.call('block', 'blocked', '1h')
      const times = members.map((_, i) => 100 + 37 * i)
      const admitted = await Promise.all(members.map((member, i) => member.check('key', times[i]!)))
      await Promise.all(members.map((member) => member.check('blocked', 5)))
      const stats = () => Promise.all(members.map((member) => member.call('stats') as Promise<LimiterStats>))
      const own = (await stats()).map((each) => each.own)
      assert.equal(
        own.map((each) => each.admitted),
        admitted,
      )
      assert.equal(
        own.map((each) => each.refused),
        times.map((each, i) => each - admitted[i]! + 5),
      )
      assert.equal(
        own.map((each) => each.blocked),
        members.map(() => 5),
      )
      // Reading them has added those of each process to the memory.
      for (const { shared, allowed, denied } of await stats()) {
        assert.equal(shared, {
          admitted: sum(admitted),
          refused: sum(own.map((each) => each.refused)),
          shadowRefused: 0,
        })
        assert.equal([allowed, denied], [shared!.admitted, shared!.refused])
      }
    }
  }))

test('of six processes that open a missing file at the same time, one creates it', () =>
  withMembers(6, async (members) => {
    for (let round = 0; round < sized({ quick: 8, full: 25 }); round++) {
      const file = at(`at once ${round}`)
      await Promise.all(members.map((member) => member.open(options(file))))
      const admitted = await Promise.all(members.map((member) => member.check('key', 4)))
      assert.is(sum(admitted), 10, `round ${round}: ${admitted}`)
      assert.not(existsSync(`${file}.new`))
    }
  }))

test('a file is created with mode 0600 under any umask, and all its space is allocated', async () => {
  for (const umask of [0, 0o277]) {
    const file = at(`umask ${umask}`)
    const before = process.umask(umask)
    const limiter = createLimiter(options(file, { maxKeys: 10_000 }))
    process.umask(before)
    const { mode, size, blocks } = statSync(file)
    assert.is(mode & 0o777, 0o600)
    assert.ok(blocks * 512 >= size, `${blocks} blocks for ${size} bytes`)
    assert.is(size, limiter.stats().bytes)
    await limiter.close()
  }
})

test('limits stay in force after all processes have ended, by kill -9 or by close', async () => {
  for (const name of ['killed', 'closed']) {
    const first = await Member.start()
    await first.open(options(at(name)))
    assert.is(await first.check('key', 7), 7)
    if (name === 'closed') await first.call('close')
    await first.kill()
    const second = await Member.start()
    await second.open(options(at(name)))
    assert.is(await second.check('key', 7), 3)
    await second.kill()
  }
})

test('the last opener’s limit holds for all, and so does an update', () =>
  withMembers(2, async ([a, b]) => {
    await a!.open(options(at('limit'), { limit: 5 }))
    assert.is(await a!.check('key', 9), 5)
    await b!.open(options(at('limit'), { limit: 8 }))
    assert.is(await a!.check('key', 9), 3)
    await b!.call('update', 'default', { limit: 9 })
    assert.is(await a!.check('key', 9), 1)
  }))

test('blocks reach every process and outlive all of them', async () => {
  const [a, b] = [await Member.start(), await Member.start()]
  await a.open(options(at('block')))
  await b.open(options(at('block')))
  await a.call('block', 'eve', '1h')
  assert.is(await b.check('eve', 1), 0)
  await Promise.all([a.kill(), b.kill()])
  const c = await Member.start()
  await c.open(options(at('block')))
  assert.is(await c.check('eve', 1), 0)
  await c.kill()
})

test('close() detaches, keeps the file and the counts, and may be called twice', async () => {
  const file = at('close')
  const limiter = createLimiter(options(file))
  limiter.check('key', 4)
  await limiter.close()
  await limiter.close()
  assertRaises(() => limiter.check('key'), 'ERR_MILLRACE_CLOSED', 'limiter')
  const again = createLimiter(options(file))
  assert.is(again.usage('key'), 4)
  await again.close()
})

const THREAD = `
  const { parentPort, workerData } = require('node:worker_threads')
  import('millrace').then(({ attachLimiter }) => {
    const limiter = attachLimiter(workerData)
    let admitted = 0
    for (let i = 0; i < 4; i++) if (limiter.check('key').allowed) admitted++
    parentPort.postMessage(admitted)
  })`

test('worker threads attach to a limiter in a file by share(), and may end and start again', async () => {
  const limiter = createLimiter(options(at('threads')))
  const admitted: number[] = []
  for (let i = 0; i < 4; i++) {
    const worker = new Worker(THREAD, { eval: true, workerData: limiter.share() })
    worker.once('message', (count) => admitted.push(count))
    await new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject))
  }
  assert.equal(admitted, [4, 4, 2, 0])
  assert.is(limiter.usage('key'), 10)
  await limiter.close()
})

test('a share refers to the same file, not to another at its path', async () => {
  const { renameSync, rmSync } = await import('node:fs')
  const limiter = createLimiter(options(at('replaced')))
  const share = structuredClone(limiter.share())
  assert.is(attachLimiter(share).peek('key').remaining, 10)
  renameSync(at('replaced'), at('moved'))
  assertRaises(() => attachLimiter(share), 'ERR_MILLRACE_SHARED_FILE', 'shared.file', 'gone')
  const other = createLimiter(options(at('replaced')))
  assertRaises(() => attachLimiter(share), 'ERR_MILLRACE_SHARED_FILE', 'shared.file', 'another')
  await Promise.all([limiter.close(), other.close()])
  rmSync(at('replaced'))
})

test.run()
