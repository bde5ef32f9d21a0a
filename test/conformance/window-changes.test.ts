// run: once, also-full, also-long
// `update` changes the window of a rule while it runs.
import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import * as assert from 'uvu/assert'
import { attachArenas } from '#millrace/memory/arenas.js'
import { ADM, CELL_RECORD, HI, LIVE, NAMES_AT, STATE, TICK } from '#millrace/memory/layout.js'
import { arenaBy } from '#millrace/memory/records.js'
import type { Either } from '../engines/both.js'
import { resolved } from '../limiter/support.js'
import { type Claims, conform, FIVE, isServer, type Subject } from './suite.js'

const left = async (limiter: Either, key = 'key') => (await limiter.peek(key)).remaining

/** The cells in the memory of a limiter, in the order of their records: the tick, not shifted, and all words. */
function cellsOf(
  limiter: Either,
  tickOf = (word: number) => word >>> 0,
): { record: number; tick: number; words: number[] }[] {
  const { buffer, file } = limiter.share()
  const bytes = file === undefined ? new Uint8Array(buffer!) : readFileSync(file.path)
  const copy = new SharedArrayBuffer(bytes.length)
  new Uint8Array(copy).set(bytes)
  const [arena] = attachArenas(copy, 1)
  const { ways, waysAt, wayWords, modulus } = arena.shape
  const cells = []
  for (let way = 0; way < ways; way++) {
    if (arena.words[NAMES_AT + way] === 0) continue // never used
    const words = [...arena.words.subarray(waysAt + way * wayWords, waysAt + (way + 1) * wayWords)]
    assert.is(words[ADM]! & STATE, LIVE)
    const record = words[HI]! & CELL_RECORD
    const { shift } = arenaBy(arena, record)!.shape
    cells.push({ record, tick: (tickOf(words[TICK]!) - shift + modulus) % modulus, words })
  }
  return cells.sort((a, b) => a.record - b.record)
}

/** Whether another limit keeps the part of it that is used. From one bucket on a server to another go whole units. */
const keepsParts = ({ place, algorithm }: Subject): boolean =>
  algorithm.countsInParts === true && !isServer(place)

const CLAIMS: Claims = {
  'one memory holds keys of a window of a second, a minute and an hour, each in ticks of its own, until they are used':
    async ({ make, clock, algorithm, granularityMs }) => {
      const limiter = make({ limit: 9, window: '1s', maxKeys: 20 })
      const windows = [1_000, 60_000, 3_600_000]
      const ticks: number[] = []
      for (const [record, windowMs] of windows.entries()) {
        await limiter.update('default', { window: windowMs })
        const granuleMs = granularityMs(windowMs, windowMs / 60, 9)
        assert.is(limiter.rule.granularityMs, granuleMs)
        await limiter.check(`key ${record}`, 1)
        if (record < 2) clock.advance(2 * windowMs) // the charge leaves the window
        assert.ok((await limiter.check(`key ${record}`, 3 + record)).allowed)
        ticks.push(Math.floor(clock.now() / (algorithm.countsInParts ? windowMs / 8 : granuleMs)))
        clock.advance(windowMs / 4)
      }
      const before = cellsOf(limiter, algorithm.tickOf)
      assert.equal(
        before.map(({ record, tick }) => [record, tick]),
        ticks.map((tick, record) => [record, tick]),
      )
      if (algorithm.countsInParts) return // part of it has come back
      assert.is(await limiter.usage('key 2'), 6)
      assert.is(await limiter.usage('key 0'), 3, 'without the first charge')
      const after = cellsOf(limiter, algorithm.tickOf)
      assert.equal(
        after.map(({ record }) => record),
        [1, 2, 2],
      )
      assert.equal(
        [after[0], after.slice(1).some((cell) => isDeepStrictEqual(cell, before[2]))],
        [before[1], true],
      )
      assert.is(await limiter.usage('key 1'), 4, 'without the first charge')
      assert.is(await left(limiter, 'key 1'), 5)
    },
  'a longer window counts what counted at the change, for one new window': async (subject) => {
    const { limiter, clock, granularityMs } = subject // 5 a minute
    await limiter.check('key', 3)
    await limiter.update('default', { window: '1h' })
    const hour = [3_600_000, granularityMs(3_600_000, 60_000)]
    assert.equal([limiter.rule.windowMs, limiter.rule.granularityMs], hour)
    clock.advance(59 * 60_000)
    const used = subject.times().used([0, 3])
    assert.equal([await left(limiter), await limiter.usage('key')], [5 - used, used])
    assert.is((await limiter.check('key', 3)).allowed, used < 3)
    clock.advance(subject.times().untilEmpty([0, 3], [59 * 60_000, 3]))
    // A window that began with the key's first request may have been charged until its end.
    if (subject.algorithm.options.align === 'first') clock.advance(60_000)
    assert.ok((await limiter.check('key', 5)).allowed)
  },
  'a longer window also counts what has left the old one since the change': async (subject) => {
    const { limiter, clock } = subject
    await limiter.check('key', 5)
    // On a server, a fixed window that has ended counts nothing.
    const beforeMs = isServer(subject.place) ? 5_000 : 30_000
    clock.advance(beforeMs)
    await limiter.update('default', { window: '1h' })
    clock.advance(70_000 - beforeMs) // 70 s after the charge: none of the 5 would count in a minute
    assert.is(await left(limiter), 0)
    assert.not((await limiter.check('key')).allowed)
  },
  'a shorter window admits again after one of its windows, and the figures are exact': async (subject) => {
    const { make, clock } = subject
    const limiter = make({ ...FIVE, window: '1h', granularity: '1m' })
    await limiter.check('key', 5)
    await limiter.update('default', { window: '1m', limit: 6 })
    clock.advance(10)
    const refused = await limiter.check('key', 2)
    assert.equal([refused.allowed, refused.remaining, refused.limit], [false, keepsParts(subject) ? 0 : 1, 6])
    clock.advance(refused.retryAfterMs - 1)
    assert.not((await limiter.check('key', 2)).allowed)
    clock.advance(1)
    assert.ok((await limiter.check('key', 2)).allowed)
  },
  'the same window again makes no new record, and converts nothing': async (subject) => {
    const { limiter, clock } = subject
    await limiter.check('key', 2)
    clock.advance(30_000)
    const granularity = subject.algorithm.granularityMs === undefined ? { granularity: '1s' as const } : {}
    for (let i = 0; i < 100; i++)
      await limiter.update('default', { window: '1m', ...granularity, limit: 10 + i })
    clock.advance(31_000)
    const limit = subject.algorithm.countsInParts ? 5 : 109
    assert.is(await left(limiter), 109 - subject.times().used([0, 2, limit]))
  },
  'a key that has rested for several windows and changes starts afresh': async (subject) => {
    const { limiter, clock } = subject
    await limiter.check('key', 5)
    for (const window of ['2m', '10s', '5m'] as const) {
      await limiter.update('default', { window })
      clock.advance(3_600_000)
    }
    assert.is(await left(limiter), 5)
    assert.ok((await limiter.check('key', 5)).allowed)
  },
  'two limiters on the same counts notice a change of each other at once': async (subject) => {
    const { limiter, clock, second } = subject
    const other = second()
    await limiter.check('key', 2)
    await other.check('other', 2)
    await other.update('default', { window: '1h' })
    assert.equal(
      [limiter.rule.windowMs, await left(limiter), await left(limiter, 'other')],
      [3_600_000, 3, 3],
    )
    assert.ok((await limiter.check('key')).allowed)
    assert.is(await left(other), 2)
    await limiter.update('default', { window: '1m', limit: 10 })
    assert.not((await other.check('key', 10)).allowed) // from here on, at the latest, the new window counts
    clock.advance(183_000) // buckets of a minute, and two windows
    assert.ok((await other.check('key', 10)).allowed)
    assert.not((await limiter.check('key')).allowed)
    if (subject.place === 'file') return // opening the file again sets its limit
    const late = second()
    assert.equal([late.rule.windowMs, late.rule.limit, await left(late)], [60_000, 10, 0])
  },
  'a blocked key stays blocked, and has its counts after the block': async (subject) => {
    const { limiter, clock } = subject
    await limiter.check('key', 4)
    await limiter.block('key', '10m')
    await limiter.update('default', { window: '1h' })
    assert.equal(
      [(await limiter.check('key')).allowed, (await limiter.peek('key', 0)).allowed],
      [false, false],
    )
    assert.ok(await limiter.unblock('key'))
    assert.is(await left(limiter), 1)
    await limiter.block('key', '2h')
    await limiter.update('default', { window: '1m' })
    clock.advance(7_200_001)
    assert.is(await left(limiter), 5)
  },
  'refund, penalize, clear and clearAll work on cells of an earlier window': async (subject) => {
    const limiter = subject.make({ ...FIVE, limit: 9 })
    const keys = ['refund', 'penalize', 'clear', 'all']
    for (const key of keys) await limiter.check(key, 5)
    await limiter.update('default', { window: '1h' })
    assert.is(await limiter.refund('refund', 2), 2)
    assert.ok(await limiter.penalize('penalize', 3))
    await limiter.clear('clear')
    assert.equal(await Promise.all(keys.map((key) => left(limiter, key))), [6, 1, 9, 4])
    for (const key of keys) await limiter.check(key)
    await limiter.update('default', { window: '1m' })
    await limiter.clearAll()
    assert.equal(await Promise.all(keys.map((key) => left(limiter, key))), [9, 9, 9, 9])
  },
  'a decision from before the change is given back as long as its key was not decided since': async (
    subject,
  ) => {
    const { limiter } = subject
    const [early, late] = [await limiter.check('early', 3), await limiter.check('late', 3)]
    await limiter.update('default', { window: '1h' })
    assert.is(await limiter.refund(early), 3)
    assert.is(await left(limiter, 'early'), 5)
    assert.is(await left(limiter, 'late'), 2)
    assert.is(await limiter.refund(late), 0)
    assert.is(await left(limiter, 'late'), 2, 'what is not given back still counts')
    const after = await limiter.check('late', 2)
    assert.is(await limiter.refund(after), 2)
  },
  'waiting calls follow a shorter window': async (subject) => {
    const { make, clock } = subject
    const limiter = make({ ...FIVE, window: '1h', granularity: '1m' })
    await limiter.check('key', 5)
    let isServed = false
    const waiting = limiter.wait('key').then(() => (isServed = true))
    await limiter.update('default', { window: '1m' })
    // The clock moves while the call tries again. Its key may count for one new window from then on.
    for (let minutes = 0; minutes < 40 && !isServed; minutes += 2) {
      clock.advance(123_000) // a bucket of a minute, and a window
      await limiter.peek('key')
    }
    assert.ok(await resolved(waiting))
  },
  'each of several rules changes by itself; retryAfterMs is exact for all together': async (subject) => {
    const { make, clock } = subject
    const rules = [
      { name: 'burst', limit: 2, window: '1s' },
      { name: 'hourly', limit: 6, window: '1h' },
    ]
    const limiter = make({ rules, maxKeys: 20 })
    assert.ok((await limiter.check('key', 2)).allowed)
    await limiter.update('burst', { limit: 3, window: '10s' })
    assert.equal(
      limiter.rules.map(({ windowMs, limit }) => [windowMs, limit]),
      [
        [10_000, 3],
        [3_600_000, 6],
      ],
    )
    assert.not((await limiter.check('key', 2)).allowed)
    assert.is(await limiter.usage('key', undefined, { rule: 'hourly' }), 2)
    clock.advance(21_000)
    assert.ok((await limiter.check('key', 3)).allowed)
    await limiter.update('hourly', { window: '1m' })
    const refused = await limiter.check('key', 2)
    assert.not(refused.allowed)
    clock.advance(refused.retryAfterMs - 1)
    assert.not((await limiter.check('key', 2)).allowed)
    clock.advance(1)
    assert.ok((await limiter.check('key', 2)).allowed)
  },
  'a group goes on by the changed rule of a member': async (subject) => {
    const { limiter: account, make, group } = subject
    const address = make({ ...FIVE, limit: 9 })
    const both = group({ account, address })
    assert.ok((await both.check({ account: 'a', address: 'b' }, 3)).allowed)
    await account.update('default', { window: '1h' })
    await address.update('default', { window: '10s', limit: 20 })
    assert.not((await both.check({ account: 'a', address: 'b' }, 3)).allowed)
    const isInParts = subject.algorithm.countsInParts
    assert.equal([await left(account, 'a'), await left(address, 'b')], [2, isInParts ? 13 : 17])
  },
  'a rule with a unit, and one that counts its refusals': async (subject) => {
    const limiter = subject.make({ ...FIVE, limit: '100KB', unit: '1KB' })
    await limiter.check('key', 40_000)
    await limiter.update('default', { window: '1h', limit: '200KB' })
    assert.is(await left(limiter), keepsParts(subject) ? 120_000 : 160_000)
    const counting = subject.make({ ...FIVE, countRefused: true })
    await counting.check('key', 5)
    await counting.update('default', { window: '1h' })
    await counting.check('key')
    assert.is(await counting.usage('key'), 6)
  },
  'a batch begun before the change decides each key by the present rule': async (subject) => {
    const { limiter } = subject
    const limit = keepsParts(subject) ? 10 : 6 // 4 of 5 are 8 of 10
    const keys = Array.from({ length: 40 }, (_, i) => `key ${i % 20}`)
    await limiter.checkMany(keys, 2)
    await limiter.update('default', { window: '1h', limit })
    const batch = await limiter.checkMany(keys, 1, { remaining: true })
    assert.equal([...batch.allowed], Array(40).fill(1))
    assert.equal([...batch.remaining!], [...Array(20).fill(1), ...Array(20).fill(0)])
    assert.is((await limiter.checkMany(keys)).allowed.indexOf(1), -1)
  },
}

conform(
  [[CLAIMS, FIVE]],
  /one memory holds|two limiters on the same counts| group|a decision from before/,
  /clearAll/,
  /clearAll| group/,
  undefined,
  /./, // the windows are those of the service
)
