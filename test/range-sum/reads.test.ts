// The reason for nodes: a sum of a long window, and a search in it, read few words.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Estimates } from '#millrace/algorithms/window/estimates.js'
import { Ring } from '#millrace/algorithms/window/ring.js'
import { SlidingWindow } from '#millrace/algorithms/window/sliding-window.js'
import { Reading } from '#millrace/core/reading.js'
import { Ticks } from '#millrace/core/ticks.js'
import { BUCKETS, type Sums, TICK } from '#millrace/memory/layout.js'
import { CHARGED } from '#millrace/range-sum/range-sum.js'
import { Cell } from './cell.js'

const GRANULE_MS = 1_000

/**
 * A cell with a unit in each tick, the last one in the middle of a lap. Its methods return how many words
 * they read.
 */
function fullCell(sums: Sums, buckets: number) {
  const cell = new Cell(sums, buckets)
  const { words, base, shape } = cell
  const last = 10 * shape.ring + Math.floor(buckets / 2)
  for (let tick = last - buckets; tick <= last; tick++) {
    words[base + TICK] = tick
    assert.is(cell.charge(tick, 1), CHARGED)
    words[base + BUCKETS + cell.ring.slot(tick)] = cell.ring.lap | 1
  }
  let reads = 0
  const counting = new Proxy(words, {
    get: (target, at) => {
      reads++
      return target[at as never]
    },
  })
  const ring = new Ring(counting, shape, 0)
  const slot = ring.slot(last)
  const readsOf = (act: (sums: Ring['sums'], place: [number, number, number]) => number, is: number) => {
    const load = Atomics.load
    Atomics.load = ((array: Int32Array, at: number) => array[at]) as never // Atomics.load accepts no proxy
    try {
      reads = 0
      assert.is(act(ring.sums, [base, slot, ring.lap]), is)
      return reads
    } finally {
      Atomics.load = load
    }
  }
  return {
    size: buckets + 1,
    sum: (length: number) => readsOf((sums, place) => sums.sum(...place, length), length),
    /** Finds when a cost is admitted. */
    retry: (cost: number) => {
      const rule = { windowMs: GRANULE_MS * buckets, buckets }
      const window = new SlidingWindow(counting as Int32Array, shape, 'strict', 0)
      const ticks = new Ticks(rule.windowMs, buckets, shape.modulus)
      const reading = new Reading({ now: () => GRANULE_MS * last }, ticks)
      reading.take()
      const estimates = new Estimates(window, ticks, false)
      const limit = buckets + 1
      return readsOf(
        () => estimates.untilAdmitted(base, cost, limit, reading),
        GRANULE_MS * cost, // the first unit leaves after a granule, each further unit a granule later
      )
    },
    find: (length: number, units: number) =>
      readsOf((sums, place) => sums.find(...place, length, units), units < length ? length - 1 - units : -1),
  }
}

for (const [sums, buckets, sumReads, findReads] of [
  // A sum reads single buckets up to a block, blocks up to a node of the second level, then those nodes. A
  // search also descends.
  ['blocks', 3_600, 112, 145],
  ['blocks', 86_400, 141, 253],
  // A sum reads at most one node of each lap per bit of the block's number. A search descends block by block.
  ['fenwick', 3_600, 67, 377],
  ['fenwick', 86_400, 71, 627],
] as const) {
  test(`${sums}, ${buckets} granules: a sum reads at most ${sumReads} words, a search at most ${findReads}`, () => {
    const { size, sum, find } = fullCell(sums, buckets)
    for (let length = 1; length <= size; length += length < 200 ? 1 : 97) {
      assert.ok(sum(length) <= sumReads, `sum of ${length}: ${sum(length)}`)
      for (const part of [0, 0.2, 0.5, 0.9, 1]) {
        const reads = find(length, Math.floor(part * length))
        assert.ok(reads <= findReads, `${part} of ${length}: ${reads}`)
      }
    }
  })
}

for (const [sums, buckets, reads] of [
  ['blocks', 3_600, 446],
  ['fenwick', 86_400, 378],
] as const) {
  test(`${sums}, ${buckets} granules: finding when a cost is admitted reads at most ${reads} words`, () => {
    const { retry } = fullCell(sums, buckets)
    for (const cost of [1, 2, 100, 1_000, 3_000, buckets]) assert.ok(retry(cost) <= reads, `cost ${cost}`)
  })
}

test.run()
