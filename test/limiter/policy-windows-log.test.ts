// run: also-full, also-long
// Random operations while policies change and `update` changes the default, judged by a log of all admissions: what an
// old window still counts at a change counts in each new one, for each algorithm, with one thread or two.
import { attachLimiter, createLimiter, manualClock } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ALGORITHMS } from '../conformance/algorithms.js'
import { sized } from '../size.js'
import { type ChangingPlace, playChanges, WINDOWS } from './changes-model.js'

const RUNS = sized({ quick: 1, full: 4, long: 200 })

/** This thread, and one that is attached. */
const INLINE: ChangingPlace = {
  isServer: false,
  async open(rule, clock, [config, other]) {
    const options = { clock, maxKeys: 100 }
    const first =
      config === undefined
        ? createLimiter({ ...options, ...rule })
        : createLimiter({ ...options, default: rule, maxWindows: 64, config })
    return [first, attachLimiter(first.share(), other === undefined ? {} : { config: other })]
  },
}

for (const [index, algorithm] of ALGORITHMS.entries()) {
  if (algorithm.onlyOnRedis !== undefined) continue
  test(`no window is over its limit while policies come and go: ${algorithm.name}`, async () => {
    for (let seed = 1; seed <= RUNS; seed++)
      await playChanges(INLINE, algorithm, seed * ALGORITHMS.length + index, true)
  })

  test(`no window is over its limit while update changes it: ${algorithm.name}`, async () => {
    for (let seed = 1; seed <= RUNS; seed++)
      await playChanges(INLINE, algorithm, seed * ALGORITHMS.length + index, false)
  })

  test(`a key that goes to and fro counts once: ${algorithm.name}`, async () => {
    const rule = { ...algorithm.options, ...(algorithm.maxLimit && { maxLimit: 100 }) }
    const clock = manualClock(60_000_000)
    const config = memoryConfig()
    const limiter = createLimiter({
      config,
      default: { ...rule, limit: 100, window: '1h' },
      clock,
      maxKeys: 100,
    })
    limiter.check('a', 5)
    for (let i = 0; i < 10; i++) {
      await config.put('a', { ...rule, limit: 100, window: '2h' })
      clock.advance(1_000)
      assert.is(limiter.usage('a'), 5, `there, ${i}`)
      await config.delete('a')
      clock.advance(1_000)
      assert.is(limiter.usage('a'), 5, `and back, ${i}`)
    }
    for (let i = 0; i < 10; i++) {
      limiter.update('default', { window: '2h' })
      clock.advance(1_000)
      assert.is(limiter.usage('a'), 5, `there by update, ${i}`)
      limiter.update('default', { window: '1h' })
      clock.advance(1_000)
      assert.is(limiter.usage('a'), 5, `and back by update, ${i}`)
    }
    await limiter.close()
  })
}

test('a key that rests while its longest window ends still counts, as that counted it at the change', async () => {
  const clock = manualClock(60_000_000)
  const limiter = createLimiter({ limit: 5, window: '1h', clock })
  assert.ok(limiter.check('a', 5).allowed)
  limiter.update('default', { window: '1m' })
  assert.is(limiter.usage('a'), 5)
  clock.advance(4 * 60_000)
  assert.ok(limiter.check('a').allowed)
  limiter.update('default', { window: '2h' })
  clock.advance(60 * 60_000)
  assert.is(limiter.usage('a'), 6)
  assert.not(limiter.check('a').allowed)
  await limiter.close()
})

for (const { name, options, maxLimit, countsInParts, onlyOnRedis } of ALGORITHMS) {
  if (onlyOnRedis !== undefined) continue
  test(`a key that rests after a change has no more left than if the new window had counted: ${name}`, async () => {
    const rule = { ...options, limit: 8, ...(maxLimit && { maxLimit: 12 }) }
    const windows = sized({ quick: WINDOWS.slice(0, 2), full: WINDOWS })
    for (const from of windows)
      for (const to of windows)
        for (const [ageMs, restMs] of [0, 400, 5_000, 30_000, 59_000].flatMap((ms) => [
          [0, ms],
          [ms, 0],
          [ms, 30_000],
          [700, ms],
        ])) {
          const clock = manualClock(60_000_123)
          const changed = createLimiter({ ...rule, window: from, clock, maxKeys: 100 })
          const alone = createLimiter({ ...rule, window: to, clock, maxKeys: 100 })
          changed.check('a', 7)
          if (!countsInParts) alone.check('a', 7)
          clock.advance(ageMs!)
          const used = changed.usage('a')
          changed.update('default', { window: to })
          if (countsInParts) alone.check('a', used)
          clock.advance(restMs!)
          const [left, most] = [changed, alone].map((limiter) => limiter.peek('a').remaining)
          // What a bucket has of a token may be lost on the way.
          const lost = countsInParts ? 1 : 0
          assert.ok(
            used === 0 || left! <= most! + lost,
            `${from} to ${to}, ${ageMs}, ${restMs}: ${left} of ${most}`,
          )
          await changed.close()
          await alone.close()
        }
  })
}

test('a longer window does not bring back what was cleared, also after it had ended', async () => {
  for (const { name, options, maxLimit, onlyOnRedis } of ALGORITHMS) {
    if (onlyOnRedis !== undefined) continue
    const rule = { ...options, limit: 10, ...(maxLimit && { maxLimit: 12 }) }
    for (const clearing of ['clear', 'clearAll'] as const)
      for (const waitMs of [0, 400, 900, 1_500, 5_000])
        for (const windows of [['1s'], ['1m', '1s']] as const) {
          const clock = manualClock(60_000_123)
          const limiter = createLimiter({ ...rule, window: windows[0], clock, maxKeys: 10 })
          limiter.check('a', 5)
          limiter.update('default', { window: '1s' })
          limiter.usage('a')
          clock.advance(waitMs)
          limiter[clearing]('a')
          limiter.update('default', { window: '1m' })
          assert.is(limiter.usage('a'), 0, `${name}, ${windows}, ${clearing} after ${waitMs}`)
          await limiter.close()
        }
  }
})

test('a window that begins before the one that it replaces counts what that never knew', async () => {
  const clock = manualClock(62_830_450)
  const limiter = createLimiter({ algorithm: 'fixed-window', limit: 6, window: 60_000, clock, maxKeys: 10 })
  assert.ok(limiter.check('a', 6).allowed)
  limiter.update('default', { window: 61_200 })
  limiter.usage('a')
  clock.advance(22_065)
  limiter.check('a')
  limiter.update('default', { window: 60_000 })
  assert.not(limiter.check('a', 5).allowed, '12 in one minute of the clock')
  await limiter.close()
})

for (const { name, options, maxLimit, onlyOnRedis } of ALGORITHMS) {
  if (onlyOnRedis !== undefined) continue
  test(`what a ledger stands for is in its cell, over several changes: ${name}`, async () => {
    const rule = { ...options, limit: 6, ...(maxLimit && { maxLimit: 12 }) }
    for (const [second, waitMs] of WINDOWS.flatMap(
      (ms) =>
        [
          [ms, 10],
          [ms, 200_000],
        ] as const,
    )) {
      const clock = manualClock(60_000_000)
      const config = memoryConfig()
      const limiter = createLimiter({ config, default: { ...rule, window: '1m' }, clock, maxKeys: 100 })
      await config.put('a', { ...rule, window: '1h' })
      assert.ok(limiter.check('a', 6).allowed)
      await config.delete('a')
      limiter.usage('a')
      clock.advance(waitMs)
      limiter.update('default', { window: second })
      clock.advance(300_000)
      limiter.usage('a')
      clock.advance(50_000)
      limiter.update('default', { window: '1h' })
      const { limit, remaining } = limiter.peek('a', 0)
      // A bucket has got less than a token back.
      assert.ok(limit - remaining >= 5, `${second}, ${waitMs}: ${limit - remaining} of 6 count`)
      await limiter.close()
    }
  })
}

test.run()
