// The nodes above the buckets of a cell, scaled down: blocks of two buckets instead of 64.
//
//   blocks    a word for each block, and with two levels one for every two blocks
//   fenwick   word i sums the blocks [i, i + lowbit(i)) of one lap, word 0 all of them
//
// A node has a lap, as a bucket has. The node of a block guards its buckets: before the node's lap changes,
// the block's counts of the old lap are cleared. So a guard that counts nothing has nothing below it.
import { BUCKETS, broken, bucket, cas, count, lap, lapOf, load, N, RING, S, TICK } from './words.mjs'

const SPAN = 2
const blocks = () => RING / SPAN
const node = (i) => BUCKETS + RING + i

/**
 * A multiple of the largest node's span, plus one spare span: so a node never counts ticks of two laps at
 * once.
 */
export const ringFor = ({ sums, levels = 1 }, n) => {
  const span = sums === 'fenwick' ? SPAN : SPAN ** levels
  return Math.ceil((n + 1) / span) * span + span
}
export const wordsFor = ({ levels = 1 }, ring) => ring / SPAN + (levels === 2 ? ring / SPAN ** 2 : 0)

/** The nodes above the bucket of a tick, the largest first, each with the block whose buckets it guards. */
export function pathOf(tick) {
  const block = Math.floor((tick % RING) / SPAN)
  const path = []
  if (S.sums === 'fenwick') {
    for (let i = block; i >= 0; i = i === 0 ? -1 : i & (i - 1)) path.unshift({ field: node(i), guards: i })
    return path
  }
  if (S.levels === 2) path.push({ field: node(blocks() + (block >> 1)) })
  path.push({ field: node(block), guards: block })
  return path
}

/** The lap of a slot in the ring that ends in `tick`. */
export const lapIn = (slot, tick) => lapOf(tick - ((((tick - slot) % RING) + RING) % RING))

/** The units counted in the window that ends in e, read from as few words as possible. */
export function* sumOfNodes(w, e) {
  const from = Math.max(0, e - N)
  let s = 0
  const counted = function* (field, tick) {
    const x = yield load(w, field)
    return lap(x) === lapOf(tick) ? count(x) : 0
  }
  for (let u = from; u <= e; ) {
    const slot = u % RING
    const block = Math.floor(slot / SPAN)
    const level2 = S.sums === 'blocks' && S.levels === 2
    if (slot % SPAN > 0) s += yield* counted(BUCKETS + slot, u++)
    else if (S.sums === 'fenwick') {
      // Whole nodes up to the end of the lap: nothing later than e is charged in this lap.
      s += yield* counted(node(block), u)
      const low = block === 0 ? blocks() : block & -block
      u += Math.min(low, blocks() - block) * SPAN
    } else if (level2 && block % 2 === 0) {
      s += yield* counted(node(blocks() + (block >> 1)), u)
      u += SPAN * SPAN
    } else {
      s += yield* counted(node(block), u)
      u += SPAN
    }
  }
  return s
}

/**
 * Clears the counts of a block's buckets that are of another lap than e's. Returns true if e itself is late.
 */
export function* cleanBlock(w, block, e) {
  for (let i = block * SPAN; i < (block + 1) * SPAN; i++) {
    const b = yield load(w, BUCKETS + i)
    if (count(b) === 0 || lap(b) === lapOf(e)) continue
    if ((yield load(w, TICK)) !== e) return true
    yield cas(w, BUCKETS + i, b, bucket(lap(b), 3, 0))
  }
  return false
}

/**
 * Sweeps a block and the node above it: clears counts of laps that are not in the ring that ends in the
 * cell's tick.
 */
export function* sweepBlock(w, block, next) {
  const first = block * SPAN
  yield* sweepNode(w, node(block), first, next, block)
  if (S.levels === 2 && block % 2 === 0) yield* sweepNode(w, node(blocks() + (block >> 1)), first, next)
}

function* sweepNode(w, field, first, next, guarded) {
  const x = yield load(w, field)
  if (count(x) === 0 || lap(x) === lapIn(first, next)) return
  const tick = yield load(w, TICK)
  if (lap(x) === lapIn(first, tick)) return
  if (guarded !== undefined && broken !== 'sweep above old counts')
    for (let i = first; i < first + SPAN; i++) {
      const b = yield load(w, BUCKETS + i)
      if (count(b) === 0 || lap(b) === lapIn(first, next)) continue
      if (lap(b) !== lapIn(first, yield load(w, TICK))) yield cas(w, BUCKETS + i, b, bucket(lap(b), 3, 0))
    }
  yield cas(w, field, x, bucket(lapIn(first, tick), 0, 0))
}
