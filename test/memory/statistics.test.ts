// How many keys a table holds: of the places that are read, every one that counts.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { SlidingWindow } from '#millrace/algorithms/sliding-window.js'
import { Reading } from '#millrace/core/reading.js'
import { checkRule } from '#millrace/core/rule.js'
import { Ticks } from '#millrace/core/ticks.js'
import { createArena } from '#millrace/memory/arena.js'
import { ADM, LIVE, NAMED, TICK } from '#millrace/memory/layout.js'
import { readStatistics } from '#millrace/memory/statistics.js'

const WAYS = 16
const MOST_SETS = 4_096

/** An empty table of so many sets, in which ways can be made to look like those of keys. */
function tableOf(sets: number) {
  const rule = checkRule({ limit: 10, window: '1m', granularity: '10s' })
  const arena = createArena(rule, Math.floor(sets * WAYS * 0.8), 'evict', 0)
  const { words, shape } = arena
  assert.is(shape.sets, sets)
  const reading = new Reading({ now: () => 1e6 }, new Ticks(rule.windowMs, rule.buckets, shape.modulus))
  const window = new SlidingWindow(words, shape, 'strict', 0)
  reading.take()
  const put = (way: number, state = LIVE, tick = reading.tick) => {
    const base = window.base(way)
    words[base + ADM] = state | 1
    words[base + TICK] = tick
  }
  return { put, reading, shape, keys: () => readStatistics(arena, window, reading).keys }
}

test('in a table of 65,536 places each counts, the first and the last, once', () => {
  const { put, keys } = tableOf(MOST_SETS)
  const ways = [0, 15, 16, 17, 30_000, WAYS * MOST_SETS - 1]
  ways.forEach((way, i) => {
    put(way)
    assert.is(keys(), i + 1)
  })
})

test('a place counts that is live and has not expired', () => {
  const { put, keys, reading, shape } = tableOf(2)
  put(3, NAMED)
  assert.is(keys(), 0)
  put(4, LIVE, reading.tick - shape.buckets - 2)
  assert.is(keys(), 0)
  put(4, LIVE, reading.tick - shape.buckets - 1)
  assert.is(keys(), 1)
})

for (const sets of [MOST_SETS + 1, 6_000, 3 * MOST_SETS]) {
  test(`in a table of ${sets} sets the keys are estimated from 4,096 of them, evenly spread`, () => {
    const { put, keys } = tableOf(sets)
    const read = new Set(Array.from({ length: MOST_SETS }, (_, i) => Math.floor((i * sets) / MOST_SETS)))
    for (let set = 0; set < sets; set++) if (!read.has(set)) put(WAYS * set + (set % WAYS))
    assert.is(keys(), 0)
    let those = 0
    for (const set of read) {
      if (set % 3 > 0) continue
      put(WAYS * set + (set % WAYS))
      those++
      if (those % 500 === 0) assert.is(keys(), Math.round((those * sets) / MOST_SETS))
    }
    assert.ok(those > 1_000)
  })
}

test.run()
