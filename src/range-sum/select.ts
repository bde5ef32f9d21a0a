import { createRequire } from 'node:module'
import { lazily } from '../core/lazily.js'
import type { Shape } from '../memory/layout.js'
import type { Words } from '../memory/words.js'
import { Linear } from './linear.js'
import type { Laps, RangeSum } from './range-sum.js'

const require = createRequire(import.meta.url)
const blocks = lazily(() => require('./blocks.js') as typeof import('./blocks.js'))
const fenwick = lazily(() => require('./fenwick.js') as typeof import('./fenwick.js'))

export function rangeSumFor(words: Words, shape: Shape, laps: Laps): RangeSum {
  if (shape.sums === 'blocks') return new (blocks().Blocks)(words, shape, laps)
  if (shape.sums === 'fenwick') return new (fenwick().Fenwick)(words, shape, laps)
  return new Linear(words, shape.ring, laps)
}
