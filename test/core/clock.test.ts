import { hrtime } from 'node:process'
import { manualClock } from 'millrace'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { monotonicClock, SharedManualClock } from '#millrace/core/clock.js'
import { turn, until } from '../limiter/support.js'

test('a manual clock reads what it was set to, 0 by default', () => {
  assert.is(manualClock().now(), 0)
  const clock = manualClock(5)
  assert.equal([clock.now(), clock.now()], [5, 5])
  for (const ms of [0.1, 1 / 3, -7, 1.7e12, 2 ** 53, -0, Number.MIN_VALUE]) {
    clock.set(ms)
    assert.ok(Object.is(clock.now(), ms), `${ms} to the last bit`)
  }
})

test('a manual clock advances, and steps back by a negative duration', () => {
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

test('two manual clocks are independent', () => {
  const one = manualClock(1)
  const two = manualClock(2)
  one.advance(10)
  assert.equal([one.now(), two.now()], [11, 2])
})

test('two clocks on the same memory are one clock', () => {
  const one = new SharedManualClock()
  const two = new SharedManualClock(one.buffer)
  one.set(5)
  two.advance(2)
  assert.equal([one.now(), two.now()], [7, 7])
})

test('a manual clock attaches only to shared memory of its size', () => {
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

test('every change of a manual clock calls its listeners, also a change to the same time', async () => {
  const clock = new SharedManualClock()
  const other = new SharedManualClock(clock.buffer)
  let calls = 0
  const listener = () => calls++
  clock.changes.add(listener)
  const turns = [() => clock.advance(1), () => clock.set(clock.now()), () => other.advance(-1)]
  for (const [i, act] of turns.entries()) {
    act()
    await until(() => calls === i + 1, `the call for turn ${i}`)
  }
  clock.changes.delete(listener)
  clock.advance(1)
  await turn()
  assert.is(calls, turns.length)
})

test('the monotonic clock reads the machine’s clock in milliseconds and does not step back', () => {
  const before = Number(hrtime.bigint()) / 1e6
  let last = monotonicClock.now()
  for (let i = 0; i < 1_000; i++) {
    const now = monotonicClock.now()
    assert.ok(now >= last)
    last = now
  }
  const after = Number(hrtime.bigint()) / 1e6
  // Both read the same clock; a double holds the time to a few nanoseconds.
  assert.ok(before <= last + 1e-3 && last <= after + 1e-3, `${before} ${last} ${after}`)
})

test.run()
