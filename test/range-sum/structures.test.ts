// run: also-full
// Each implementation of the sums by itself, against its documentation: the memory word by word, then the
// results.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { BUCKETS, COUNT, LAP, NODE_COUNT, ONE_LAP, type Sums, TICK } from '#millrace/memory/layout.js'
import { CHARGED, LATE, OVERFLOWN } from '#millrace/range-sum/range-sum.js'
import { interrupted } from '../algorithms/interrupted.js'
import { random } from '../algorithms/random.js'
import { nodesAbove } from '../explore/nodes.js'
import { sized } from '../size.js'
import { Cell, Expected } from './cell.js'

const SHARE = sized({ quick: 0.1, full: 1 })

type Next = () => number

/** The number of different words in a cell. It divides none of the cell's parts. */
const SOME = 509

const SHAPES: readonly (readonly [sums: Sums, buckets: number])[] = [
  ['linear', 1],
  ['linear', 60],
  ['blocks', 300],
  ['blocks', 4_097],
  ['blocks', 9_000],
  ['fenwick', 300],
  ['fenwick', 1_500],
]
const named = ([sums, buckets]: (typeof SHAPES)[number]) => `${sums}, ${buckets} granules`

const below = (next: Next, most: number) => Math.floor(next() * most)
const oneOf = <T>(next: Next, all: readonly T[]): T => all[below(next, all.length)]!

/** Fills the cell with random words: of the laps of a ring that ends in `tick`, and of older ones. */
function fill({ words, shape, base, ring }: Cell, tick: number, next: Next): void {
  ring.slot(tick)
  const { lap } = ring
  const some = Array.from({ length: SOME }, () => {
    const units = oneOf(next, [0, 1, 5, below(next, NODE_COUNT), NODE_COUNT - 5, NODE_COUNT])
    return ((lap - oneOf(next, [0, 0, 1, 1, 2, 100]) * ONE_LAP) & LAP) | units
  })
  // Words outside the sums look like nodes, too.
  for (let i = 0, at = below(next, SOME); i < words.length; i++, at++) words[i] = some[at % SOME]!
  for (let i = 0; i < shape.ring; i++) words[base + BUCKETS + i]! &= LAP | COUNT
  words[base + TICK] = tick
}

function assertSame({ words }: Cell, expected: Expected, message: string): void {
  const i = words.findIndex((word, at) => word !== expected.words[at])
  const hex = (word: number) => (word >>> 0).toString(16)
  if (i >= 0)
    assert.unreachable(
      `${message}: word ${i - expected.base} is ${hex(words[i]!)}, not ${hex(expected.words[i]!)}`,
    )
}

/** A random tick below the modulus. If the cell's tick differs, it is later. */
function anyTick({ shape }: Cell, next: Next): number {
  return below(next, shape.modulus) | 0
}

for (const shape of SHAPES) {
  test(`${named(shape)}: a charge goes to each node above the bucket, or to none`, () => {
    const next = random(1)
    const cell = new Cell(...shape)
    const answers = new Set<number>()
    for (let i = 0; i < 200 * SHARE; i++) {
      const tick = anyTick(cell, next)
      fill(cell, tick, next)
      if (next() < 0.3) cell.words[cell.base + TICK] = cell.ring.after(tick, 1 + below(next, 3))
      const cost = oneOf(next, [1, 5, 1_000])
      const expected = new Expected(cell)
      const answer = expected.charge(tick, cost)
      assert.is(cell.charge(tick, cost), answer, `round ${i}`)
      assertSame(cell, expected, `round ${i}`)
      answers.add(answer)
    }
    assert.equal([...answers].sort(), shape[0] === 'linear' ? [CHARGED] : [OVERFLOWN, LATE, CHARGED].sort())
  })

  test(`${named(shape)}: a take-out lowers the nodes of its lap that count as much, and makes room`, () => {
    const next = random(2)
    const cell = new Cell(...shape)
    for (let i = 0; i < 100 * SHARE; i++) {
      const tick = anyTick(cell, next)
      fill(cell, tick, next)
      // In a Fenwick tree node 0 has the largest count, so `roomAbove` reads only that one.
      if (shape[0] !== 'fenwick') assert.is(cell.roomAbove(tick), roomAbove(cell, tick))
      const units = oneOf(next, [1, 5, 1_000])
      const expected = new Expected(cell)
      expected.takeOut(tick, units)
      cell.takeOut(tick, units)
      assertSame(cell, expected, `round ${i}`)
    }
  })

  test(`${named(shape)}: the sweep visits each place once in 64 laps, and clears counts of laps outside the ring`, () => {
    const next = random(3)
    const cell = new Cell(...shape)
    const { ring } = cell.shape
    const far = 64 * ring
    const hops = [0, 1, 63, 64, 65, 4_095, 4_096, 4_097, far - 1, far, far + 256 * ring, far + 3 * 256 * ring]
    for (let i = 0; i < 100 * SHARE; i++) {
      const from = next() < 0.3 ? (64 * below(next, 2 ** 25)) | 0 : anyTick(cell, next)
      const hop = next() < 0.3 ? below(next, far) : oneOf(next, hops)
      const to = cell.ring.after(from, hop)
      fill(cell, to, next)
      if (next() < 0.5) cell.words[cell.base + TICK] = cell.ring.after(to, below(next, 2 * ring))
      const expected = new Expected(cell)
      expected.sweep(from, hop, to)
      cell.ring.sums.sweep(cell.base, from, hop, to)
      assertSame(cell, expected, `round ${i}: from ${from} by ${hop}`)
    }
  })

  test(`${named(shape)}: sums and searches match a list of all charges, after charges, take-outs and sweeps`, () => {
    let full = 0
    for (const seed of [1, 2, 3]) full += play(new Cell(...shape), random(seed))
    assert.is(full > 0, shape[0] !== 'linear', 'a node was full')
  })
}

for (const shape of SHAPES.filter(([, buckets]) => buckets > 5)) {
  test(`${named(shape)}: at the turn of a lap, sums and searches find only what is in the window`, () => {
    const cell = new Cell(...shape)
    const { words, base } = cell
    const turn = 10 * cell.shape.ring
    // The words around the cell look like nodes of the previous lap.
    words.fill((9 * ONE_LAP) | 1_000).fill(0, base, base + cell.shape.wayWords)
    for (const [tick, cost] of [
      [turn - cell.shape.ring, 7], // in the same slot, long out of the window
      [turn - 2, 5],
    ] as const) {
      words[base + TICK] = tick
      assert.is(cell.charge(tick, cost), CHARGED)
      words[base + BUCKETS + cell.ring.slot(tick)] = cell.ring.lap | cost
    }
    assert.is(cell.sum(turn + 1, 5), 5)
    assert.is(cell.find(turn + 1, 5, 4), 3)
    assert.is(cell.find(turn + 1, 5, 5), -1)
    assert.equal([cell.sum(turn + 1, 0), cell.find(turn + 1, 0, 0)], [0, -1])
  })
}

/**
 * A charge at the turn of a lap, while the nodes are still of the previous lap. Another charge interrupts it
 * at each point.
 */
function chargedAmid(
  shape: (typeof SHAPES)[number],
  laterBy: number,
  judge: (cell: Cell, tick: number) => void,
) {
  for (let point = 0, isOver = false; !isOver; point++) {
    const cell = new Cell(...shape)
    const { words, base, ring } = cell
    const tick = 20 * cell.shape.ring + 70
    const put = (at: number, cost: number) => {
      const answer = cell.charge(at, cost)
      const bucket = base + BUCKETS + ring.slot(at)
      // As in the algorithms: a bucket of a past tick is not charged.
      if (answer === CHARGED && words[base + TICK] === at)
        words[bucket] = ((words[bucket]! & LAP) === ring.lap ? words[bucket]! : ring.lap) + cost
    }
    words[base + TICK] = tick - cell.shape.ring
    put(tick - cell.shape.ring, 9)
    words[base + TICK] = tick
    const { wasInterrupted } = interrupted(
      [point],
      () => put(tick, 5),
      () => {
        words[base + TICK] = tick + laterBy
        put(tick + laterBy, 3)
      },
    )
    isOver = !wasInterrupted
    if (wasInterrupted) judge(cell, tick + laterBy)
  }
}

for (const shape of SHAPES.filter(([sums]) => sums !== 'linear')) {
  test(`${named(shape)}: two concurrent charges to the nodes at the turn of a lap both count`, () => {
    chargedAmid(shape, 0, (cell, tick) => {
      const expected = new Expected(cell)
      assert.is(roomAbove(cell, tick), NODE_COUNT - 8)
      assert.is(expected.counted(expected.bucketAt(expected.slotOf(tick)), expected.lap(tick), COUNT), 8)
    })
  })

  test(`${named(shape)}: a late charge leaves nodes and buckets of the next lap unchanged`, () => {
    chargedAmid(shape, new Cell(...shape).shape.ring, (cell, tick) => {
      const expected = new Expected(cell)
      assert.is(roomAbove(cell, tick), NODE_COUNT - 3)
      assert.is(expected.counted(expected.bucketAt(expected.slotOf(tick)), expected.lap(tick), COUNT), 3)
    })
  })
}

/** Charges buckets and nodes together, as the algorithms do. Returns how often a node was full. */
function play(cell: Cell, next: Next): number {
  const { shape, ring, words, base } = cell
  const charges = new Map<number, number>()
  const charged = (tick: number) => charges.get(tick) ?? 0
  const word = (tick: number) => ring.after(0, tick)
  const bucketOf = (tick: number) => base + BUCKETS + ring.slot(word(tick))
  let now = shape.modulus - below(next, 3 * ring.size)
  words[base + TICK] = word(now)
  let full = 0
  const charge = (cost: number) => {
    const own = word(now)
    const room = cell.roomAbove(own)
    assert.is(room, roomAbove(cell, own), `tick ${now}`)
    if (charged(now) + cost > COUNT || cost === 0) return
    const answer = cell.charge(own, cost)
    assert.is(answer, cost <= room ? CHARGED : OVERFLOWN, `tick ${now}`)
    if (answer === OVERFLOWN) full++
    else {
      words[bucketOf(now)] = ring.lap | (charged(now) + cost)
      charges.set(now, charged(now) + cost)
    }
  }
  const judge = (later: number, length: number, message: string) => {
    const inside = [...charges].filter(([tick]) => tick > later - length && tick <= later)
    const sum = inside.reduce((all, [, units]) => all + units, 0)
    assert.is(cell.sum(word(later), length), sum, `${message}: ${length} ticks up to ${later}`)
    const units = Math.max(oneOf(next, [0, below(next, sum), sum - 1, sum]), 0)
    let left = units
    const found = inside.find(([, count]) => {
      left -= count
      return left < 0
    })
    const age = found === undefined ? -1 : later - found[0]
    assert.is(cell.find(word(later), length, units), age, `${message}: ${units} of ${sum}`)
  }
  for (let round = 0; round < 400; round++) {
    const message = `round ${round}, tick ${now}`
    const by = below(
      next,
      2 * oneOf(next, [0, 0, 0, 1, 1, 1, 1, 1, 1, 3, 64, ring.size, 40 * shape.ring]) + 1,
    )
    if (by > 0) cell.moveTo(word(now + by), by)
    now += by
    const own = word(now)
    const cost = oneOf(next, [1, 100, COUNT - charged(now)])
    charge(cost)
    const back = now - below(next, Math.min(ring.size, 5))
    if (charged(back) > 0 && next() < 0.4) {
      const units = 1 + below(next, charged(back))
      words[bucketOf(back)]! -= units
      cell.takeOut(word(back), units)
      charges.set(back, charged(back) - units)
    }
    if (round % 20 === 0) assertNodesAddUp(cell, own, message)
    const later = now + oneOf(next, [0, 0, 1, below(next, ring.size)])
    judge(later, oneOf(next, [1, 1 + below(next, ring.size), ring.size]), message)
  }
  // Windows that begin at every position in a block.
  for (let i = 0; i < 200; i++) {
    now++
    cell.moveTo(word(now), 1)
    charge(below(next, 3))
  }
  for (let length = 1; length <= Math.min(ring.size, 200); length++) judge(now, length, `at ${now}`)
  return full
}

function roomAbove(cell: Cell, tick: number): number {
  const expected = new Expected(cell)
  if (cell.shape.sums === 'linear') return COUNT
  const counts = expected
    .nodes(tick)
    .map((node) => expected.counted(expected.nodeAt(node), expected.lap(tick), NODE_COUNT))
  return NODE_COUNT - Math.max(...counts)
}

/** Asserts that a node of the tick's lap counts exactly what its buckets count, and an older one no less. */
function assertNodesAddUp(cell: Cell, tick: number, message: string): void {
  const expected = new Expected(cell)
  const { shape, words } = cell
  const sums = new Int32Array(shape.blocks + shape.upper)
  for (let slot = 0; slot < shape.ring; slot++) {
    const b = words[expected.bucketAt(slot)]!
    for (const node of nodesAbove(shape, slot)) {
      if (((b ^ words[expected.nodeAt(node)]!) & LAP) === 0) sums[node]! += b & COUNT
    }
  }
  sums.forEach((sum, node) => {
    const x = words[expected.nodeAt(node)]!
    const count = x & NODE_COUNT
    const isSound = (x & LAP) === expected.lap(tick) ? count === sum : count >= sum
    assert.ok(isSound, `${message}: node ${node} counts ${count} where its buckets count ${sum}`)
  })
}

test.run()
