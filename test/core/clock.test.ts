import { hrtime } from 'node:process'
import { manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { monotonicClock, SharedManualClock } from '#millrace/core/clock.js'

test('a manual clock stands where it was set, at 0 by default', () => {
  assert.is(manualClock().now(), 0)
  const clock = manualClock(5)
  assert.equal([clock.now(), clock.now()], [5, 5])
  for (const ms of [0.1, 1 / 3, -7, 1.7e12, 2 ** 53, -0, Number.MIN_VALUE]) {
    clock.set(ms)
    assert.ok(Object.is(clock.now(), ms), `${ms} to the last bit`)
  }
})

test('a manual clock moves on, and back', () => {
  const clock = manualClock(100)
  clock.advance(50)
  assert.is(clock.now(), 150)
  clock.advance(0.5)
  assert.is(clock.now(), 150.5)
  clock.advance(-100)
  assert.is(clock.now(), 50.5)
  clock.set(10)
  assert.is(clock.now(), 10)
})

test('two manual clocks are two', () => {
  const one = manualClock(1)
  const two = manualClock(2)
  one.advance(10)
  assert.equal([one.now(), two.now()], [11, 2])
})

test('two clocks over the same memory are one', () => {
  const one = new SharedManualClock()
  const two = new SharedManualClock(one.buffer)
  one.set(5)
  two.advance(2)
  assert.equal([one.now(), two.now()], [7, 7])
  assert.is(one.turns, two.turns)
})

test('only shared memory of its size can be a manual clock’s', () => {
  assert.ok(SharedManualClock.isMemory(new SharedManualClock().buffer))
  for (const value of [
    undefined,
    null,
    16,
    {},
    new ArrayBuffer(16),
    new SharedArrayBuffer(8),
    new Int32Array(4),
  ]) {
    assert.not(SharedManualClock.isMemory(value))
  }
})

test('every turn wakes those who waited since before it, and none is missed', async () => {
  const clock = new SharedManualClock()
  const alive = setInterval(() => {}, 1_000) // the wait itself does not keep the process
  const turns = clock.turns
  const early = clock.turned(turns)
  clock.advance(1)
  await early
  await clock.turned(turns) // turned between the reading of `turns` and the wait
  const second = clock.turned(clock.turns)
  clock.set(clock.now()) // also when it is set to where it stands
  await second
  assert.is(clock.turns, turns + 2)
  clearInterval(alive)
})

test('the monotonic clock reads the machine’s, in milliseconds, and does not go back', () => {
  const before = Number(hrtime.bigint()) / 1e6
  let last = monotonicClock.now()
  for (let i = 0; i < 1_000; i++) {
    const now = monotonicClock.now()
    assert.ok(now >= last)
    last = now
  }
  const after = Number(hrtime.bigint()) / 1e6
  // Both are the same clock; a double holds it to a few nanoseconds.
  assert.ok(before <= last + 1e-3 && last <= after + 1e-3, `${before} ${last} ${after}`)
})

test.run()
