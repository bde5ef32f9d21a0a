import { createRequire } from 'node:module'
import type { AlgorithmName } from '../core/algorithms.js'
import { lazily } from '../core/lazily.js'
import type { Ticks } from '../core/ticks.js'
import type { Arena } from '../memory/records.js'
import type { Algorithm } from './algorithm.js'
import { SlidingWindow } from './window/sliding-window.js'

const require = createRequire(import.meta.url)
const slidingLog = lazily(() => require('./log/sliding-log.js') as typeof import('./log/sliding-log.js'))
const fixedWindow = lazily(() => require('./word/fixed-window.js') as typeof import('./word/fixed-window.js'))
const tokenBucket = lazily(() => require('./word/token-bucket.js') as typeof import('./word/token-bucket.js'))

/** How cells count in the addon: `native/algorithm.h`. */
export type NativeCounting = 'BUCKETS' | 'FIXED_WINDOW' | 'TOKEN_BUCKET' | 'LOG'

/** An algorithm by its name. */
interface Kind {
  /** How its cells count in the addon. */
  readonly native: NativeCounting
  make(arena: Arena, ticks: Ticks): Algorithm
}

const SLIDING_WINDOW: Kind = {
  native: 'BUCKETS',
  make: ({ words, shape, edge, originMs }, ticks) => new SlidingWindow(words, shape, edge, originMs, ticks),
}
const TOKEN_BUCKET: Kind = {
  native: 'TOKEN_BUCKET',
  make: ({ words, shape, originMs }, ticks) => new (tokenBucket().TokenBucket)(words, shape, originMs, ticks),
}

const KINDS: Readonly<Record<AlgorithmName, Kind>> = {
  'sliding-window': SLIDING_WINDOW,
  // The same with one bucket in the window, and the smooth edge: `checkRule` has set both.
  'sliding-counter': SLIDING_WINDOW,
  'sliding-log': {
    native: 'LOG',
    make: ({ words, shape, originMs }, ticks) => new (slidingLog().SlidingLog)(words, shape, originMs, ticks),
  },
  'fixed-window': {
    native: 'FIXED_WINDOW',
    make: ({ words, shape, originMs }, ticks) =>
      new (fixedWindow().FixedWindow)(words, shape, originMs, ticks),
  },
  'token-bucket': TOKEN_BUCKET,
  'leaky-bucket': TOKEN_BUCKET,
}

/** The algorithm of an arena's present rule, on the cells of its record. */
export function algorithmFor(arena: Arena, ticks: Ticks): Algorithm {
  return KINDS[arena.algorithm].make(arena, ticks)
}

/** How the cells of the arena's algorithm count in the addon. */
export const nativeCounting = ({ algorithm }: Arena): NativeCounting => KINDS[algorithm].native
