import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { count, readCounter } from '#millrace/memory/counters.js'
import { interrupted } from '../algorithms/interrupted.js'

const AT = 2

function counter(): Int32Array {
  return new Int32Array(new SharedArrayBuffer(4 * 6))
}

test('a counter continues across 2^31 and 2^32', () => {
  const words = counter()
  let sum = 0
  for (let i = 0; i < 9; i++) {
    count(words, AT, 2 ** 30 + 1)
    sum += 2 ** 30 + 1
    assert.is(readCounter(words, AT), sum)
  }
})

test('a counter wraps at exactly 2^32', () => {
  const words = counter()
  count(words, AT, 2 ** 32 - 2)
  count(words, AT, 1)
  assert.is(readCounter(words, AT), 2 ** 32 - 1)
  assert.equal([...words], [0, 0, -1, 0, 0, 0])
  count(words, AT, 1)
  assert.is(readCounter(words, AT), 2 ** 32)
  assert.equal([...words], [0, 0, 0, 1, 0, 0])
})

test('a subtraction takes back an addition, across 2^32 too', () => {
  const words = counter()
  count(words, AT, 2 ** 32 - 1)
  count(words, AT, 3)
  count(words, AT, -3)
  assert.is(readCounter(words, AT), 2 ** 32 - 1)
  assert.equal([...words], [0, 0, -1, 0, 0, 0])
})

test('a counter below 0 reads as 0 until the addition comes', () => {
  const words = counter()
  count(words, AT, -2)
  assert.is(readCounter(words, AT), 0)
  count(words, AT, 5)
  assert.is(readCounter(words, AT), 3)
  assert.equal([...words], [0, 0, 3, 0, 0, 0])
})

test('a read of a counter that wraps meanwhile returns the count before or after it', () => {
  const seen = new Set<number>()
  for (let point = 0, isOver = false; !isOver; point++) {
    const words = counter()
    count(words, AT, 2 ** 32 - 1)
    const { result, wasInterrupted } = interrupted(
      [point],
      () => readCounter(words, AT),
      () => count(words, AT, 1),
    )
    isOver = !wasInterrupted
    if (wasInterrupted) seen.add(result)
  }
  assert.equal([...seen].sort(), [2 ** 32 - 1, 2 ** 32])
})

test.run()
