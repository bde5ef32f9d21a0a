import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ADM, HI, LIVE, NAMES_AT, shapeFor, WAYS_PER_SET } from '#millrace/memory/layout.js'
import { Table } from '#millrace/memory/table.js'

const SETS = 50

function tableOf(sets = SETS) {
  const shape = shapeFor(1_000, 10, sets)
  const words = new Int32Array(new SharedArrayBuffer(4 * shape.words))
  const table = new Table(words, shape)
  const put = (way: number, lo: number, hi: number, admission = LIVE) => {
    words[NAMES_AT + way] = lo
    words[table.base(way) + HI] = hi
    words[table.base(way) + ADM] = admission
  }
  return { table, put }
}

/** Evenly spread 32-bit numbers. */
function* evenly(count: number): Generator<number> {
  for (let i = 0; i < count; i++) yield Math.floor(((i + 0.5) / count) * 2 ** 32) | 0
}

test('each set is the first set of equally many keys', () => {
  for (const sets of [2, 3, SETS]) {
    const { table } = tableOf(sets)
    const keys = new Map<number, number>()
    for (const lo of evenly(100 * sets)) {
      const set = table.firstSet(lo)
      keys.set(set, (keys.get(set) ?? 0) + 1)
    }
    assert.equal(
      [...keys],
      Array.from({ length: sets }, (_, i) => [i * WAYS_PER_SET, 100]),
    )
  }
})

test('each set is the second set of equally many keys, and never both sets of one key', () => {
  for (const sets of [2, 3, SETS]) {
    const { table } = tableOf(sets)
    for (let first = 0; first < sets; first++) {
      const keys = new Map<number, number>()
      for (const hi of evenly(100 * (sets - 1))) {
        const set = table.secondSet(first * WAYS_PER_SET, hi) / WAYS_PER_SET
        keys.set(set, (keys.get(set) ?? 0) + 1)
      }
      const others = Array.from({ length: sets }, (_, i) => i).filter((i) => i !== first)
      assert.equal(
        [...keys].sort(([a], [b]) => a - b),
        others.map((i) => [i, 100]),
      )
    }
  }
})

test('a key is found by both halves of its fingerprint, in each way of both its sets', () => {
  const [lo, hi] = [123_456_789, -987_654_321]
  const ways = [...tableOf().table.waysOf(lo, hi)]
  assert.is(new Set(ways).size, 2 * WAYS_PER_SET)
  for (const way of ways) {
    const { table, put } = tableOf()
    assert.equal([table.guess(lo, hi), table.find(lo, hi), table.findLive(lo, hi)], [-1, -1, -1])
    put(way, lo, hi)
    assert.equal([table.guess(lo, hi), table.find(lo, hi), table.findLive(lo, hi)], [way, way, way])
    for (const [otherLo, otherHi] of [
      [lo + 1, hi],
      [lo, hi + 1],
    ] as const) {
      assert.equal(
        [table.isNamed(way, otherLo, otherHi), table.isLive(way, otherLo, otherHi)],
        [false, false],
      )
      assert.equal([table.find(otherLo, otherHi), table.findLive(otherLo, otherHi)], [-1, -1])
    }
  }
})

test('the guess is the home way of the key if that has the low half of its name', () => {
  for (const lo of [...evenly(100)].map((lo, i) => (lo & ~(WAYS_PER_SET - 1)) | (i % WAYS_PER_SET))) {
    const { table, put } = tableOf()
    const home = table.firstSet(lo) + (lo & (WAYS_PER_SET - 1))
    put(home, lo, 1)
    assert.equal([table.guess(lo, 2), table.find(lo, 2)], [home, -1])
  }
})

test('a stale name of a key does not hide its live way, in any two ways', () => {
  const [lo, hi] = [-5, 77]
  const ways = [...tableOf().table.waysOf(lo, hi)]
  for (const former of ways) {
    for (const way of ways.filter((way) => way !== former)) {
      const { table, put } = tableOf()
      put(former, lo, hi, 0)
      assert.is(table.findLive(lo, hi), -1)
      put(way, lo, hi)
      assert.is(table.findLive(lo, hi), way)
    }
  }
})

test.run()
