import type { Shape } from '../memory/layout.js'
import type { Words } from '../memory/words.js'
import { Blocks } from './blocks.js'
import { Fenwick } from './fenwick.js'
import { Linear } from './linear.js'
import type { Laps, RangeSum } from './range-sum.js'

export function rangeSumFor(words: Words, shape: Shape, laps: Laps): RangeSum {
  if (shape.sums === 'blocks') return new Blocks(words, shape, laps)
  if (shape.sums === 'fenwick') return new Fenwick(words, shape, laps)
  return new Linear(words, shape.ring, laps)
}
