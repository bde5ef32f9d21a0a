// Sums kept above the buckets of a cell, scaled down: blocks of two buckets in place of 64.
//
//   blocks    a word for each block, and with two levels one for every two blocks
//   fenwick   word i sums the blocks [i, i + lowbit(i)) of one lap, word 0 all of them
//
// A node bears a lap, as a bucket does. The word of a block guards its buckets: before it takes another lap, what they hold of
// the old one goes; so a guard that counts nothing has nothing below it.
import { BUCKETS, broken, bucket, cas, count, lap, lapOf, load, N, RING, S, TICK } from './words.mjs'

const SPAN = 2
const blocks = () => RING / SPAN
const node = (i) => BUCKETS + RING + i

/** A multiple of the largest node's span, and one span to spare: a node is never asked for two laps. */
export const ringFor = ({ sums, levels = 1 }, n) => {
  const span = sums === 'fenwick' ? SPAN : SPAN ** levels
  return Math.ceil((n + 1) / span) * span + span
}
export const wordsFor = ({ levels = 1 }, ring) => ring / SPAN + (levels === 2 ? ring / SPAN ** 2 : 0)

/** The nodes above the bucket of a tick, the largest first; the block whose buckets a node guards. */
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

/** The lap that a slot has in the ring that ends in `tick`. */
export const lapIn = (slot, tick) => lapOf(tick - ((((tick - slot) % RING) + RING) % RING))

/** What the window that ends in e has counted, out of as few words as there are. */
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
      // To the end of the lap in whole nodes: of this lap nothing later than e is charged.
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

/** Takes what a block's buckets hold of another lap than that of e out; whether e is late, and so perhaps the older one. */
export function* cleanBlock(w, block, e) {
  for (let i = block * SPAN; i < (block + 1) * SPAN; i++) {
    const b = yield load(w, BUCKETS + i)
    if (count(b) === 0 || lap(b) === lapOf(e)) continue
    if ((yield load(w, TICK)) !== e) return true
    yield cas(w, BUCKETS + i, b, bucket(lap(b), 3, 0))
  }
  return false
}

/** The sweep, of a block and the node above it: what is of no lap in the ring that ends in the cell's tick goes. */
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
  if (guarded !== undefined && broken !== 'swept unclean')
    for (let i = first; i < first + SPAN; i++) {
      const b = yield load(w, BUCKETS + i)
      if (count(b) === 0 || lap(b) === lapIn(first, next)) continue
      if (lap(b) !== lapIn(first, yield load(w, TICK))) yield cas(w, BUCKETS + i, b, bucket(lap(b), 3, 0))
    }
  yield cas(w, field, x, bucket(lapIn(first, tick), 0, 0))
}
