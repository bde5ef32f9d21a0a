import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { inOrder } from '../../bench/keys.js'
import { awaitedSlices, directSlices, type Slice, takeTurnsFor, takeTurnsThrough } from '../../bench/turns.js'

const KEYS = 1_000
const keyAt = (index: number) => `key ${index}`

test('every decision of an order is made once, in order', async () => {
  const decided: string[] = []
  const slice = directSlices(keyAt, (key) => decided.push(key) > 0)
  const { decisions } = await takeTurnsThrough(inOrder(KEYS), slice)
  assert.is(decisions, KEYS)
  assert.equal(
    decided,
    Array.from({ length: KEYS }, (_, i) => keyAt(i)),
  )
})

test('the event loop runs between slices', async () => {
  let turns = 0
  const timer = setInterval(() => turns++, 1)
  const slice = directSlices(keyAt, () => true)
  await takeTurnsFor(20, inOrder(KEYS), slice)
  clearInterval(timer)
  assert.ok(turns > 0)
})

test('a slice that blocks the loop is the longest pause', async () => {
  const BLOCKED_MS = 30
  let calls = 0
  const slice: Slice = (_order, from, to) => {
    const until = performance.now() + (++calls === 2 ? BLOCKED_MS : 0)
    while (performance.now() < until);
    return to - from
  }
  const { longestMs } = await takeTurnsThrough(inOrder(KEYS), slice)
  assert.ok(longestMs >= BLOCKED_MS, `${longestMs} ms`)
})

test('a refusal is an error, synchronous or not', async () => {
  const direct = directSlices(keyAt, (key) => key !== keyAt(7))
  const awaited = awaitedSlices(keyAt, {
    decide: async (key) => key !== keyAt(7),
    isAllowed: (answer) => answer,
  })
  for (const slice of [direct, awaited]) {
    const end = await takeTurnsThrough(inOrder(KEYS), slice).catch((error: unknown) => error)
    assert.match((end as Error).message, 'were refused')
  }
})

test.run()
