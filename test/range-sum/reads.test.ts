// What nodes are there for: how few words a sum of a long window reads, and who looks for a place in it.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Ring } from '#millrace/algorithms/ring.js'
import { BUCKETS, type Sums, TICK } from '#millrace/memory/layout.js'
import { CHARGED } from '#millrace/range-sum/range-sum.js'
import { Cell } from './cell.js'

/** A unit in each of its ticks, of which the last is in the middle of a lap; and how many words `act` reads in it. */
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
    Atomics.load = ((array: Int32Array, at: number) => array[at]) as never // no proxy will do for it
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
    find: (length: number, units: number) =>
      readsOf((sums, place) => sums.find(...place, length, units), units < length ? length - 1 - units : -1),
  }
}

for (const [sums, buckets, sumReads, findReads] of [
  // A sum: single buckets as far as a block, blocks as far as a node of the second level, and those. Who looks for a place goes
  // down again.
  ['blocks', 3_600, 112, 145],
  ['blocks', 86_400, 141, 253],
  // Of each lap as many nodes as its blocks have bits; down again, one block after the other.
  ['fenwick', 3_600, 67, 377],
  ['fenwick', 86_400, 71, 627],
] as const) {
  test(`${sums}, ${buckets} granules: a sum reads at most ${sumReads} words, who looks for a place ${findReads}`, () => {
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

test.run()
