import type { Shape } from '#millrace/memory/layout.js'

/** The nodes above a bucket, in their order behind the ring. Written independently of `range-sum/`. */
export function nodesAbove({ sums, ring, blocks, upper }: Shape, slot: number): number[] {
  if (sums === 'linear') return []
  const block = Math.floor((slot * blocks) / ring)
  if (sums === 'blocks') return upper > 0 ? [block, blocks + Math.floor((slot * upper) / ring)] : [block]
  const nodes = [block]
  while (nodes.at(-1)! > 0) nodes.push(nodes.at(-1)! & (nodes.at(-1)! - 1))
  return nodes
}
