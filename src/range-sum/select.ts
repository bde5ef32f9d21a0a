import type { Shape, Sums } from '../memory/layout.js'
import type { Words } from '../memory/words.js'
import { Blocks } from './blocks.js'
import { Fenwick } from './fenwick.js'
import { Plain } from './plain.js'
import type { Laps, RangeSum } from './range-sum.js'

/** The most buckets that are summed one by one. */
export const MOST_PLAIN = 256

/** What a window of so many buckets is summed by, where nobody says otherwise. */
export function sumsFor(buckets: number): Sums {
  return buckets > MOST_PLAIN ? 'blocks' : 'plain'
}

export function rangeSumFor(words: Words, shape: Shape, laps: Laps): RangeSum {
  if (shape.sums === 'blocks') return new Blocks(words, shape, laps)
  if (shape.sums === 'fenwick') return new Fenwick(words, shape, laps)
  return new Plain(words, shape.ring, laps)
}
