import type { AlgorithmName } from '../core/rule-algorithms.js'
import type { Ticks } from '../core/ticks.js'
import type { Arena } from '../memory/arena.js'
import type { Algorithm } from './algorithm.js'
import { FixedWindow } from './fixed-window.js'
import { SlidingLog } from './sliding-log.js'
import { SlidingWindow } from './sliding-window.js'
import { TokenBucket } from './token-bucket.js'

/** An algorithm by its name. */
interface Kind {
  /** Whether the addon has it, too. Otherwise TypeScript decides everything by it. */
  readonly isNative: boolean
  make(arena: Arena, ticks: Ticks): Algorithm
}

const SLIDING_WINDOW: Kind = {
  isNative: true,
  make: ({ words, shape, edge, originMs }, ticks) => new SlidingWindow(words, shape, edge, originMs, ticks),
}
const TOKEN_BUCKET: Kind = {
  isNative: false,
  make: ({ words, shape, originMs }, ticks) => new TokenBucket(words, shape, originMs, ticks),
}

const KINDS: Readonly<Record<AlgorithmName, Kind>> = {
  'sliding-window': SLIDING_WINDOW,
  // The same with one bucket in the window, and the smooth edge: `checkRule` has set both.
  'sliding-counter': SLIDING_WINDOW,
  'sliding-log': {
    isNative: false,
    make: ({ words, shape, originMs }, ticks) => new SlidingLog(words, shape, originMs, ticks),
  },
  'fixed-window': {
    isNative: false,
    make: ({ words, shape, originMs }, ticks) => new FixedWindow(words, shape, originMs, ticks),
  },
  'token-bucket': TOKEN_BUCKET,
  'leaky-bucket': TOKEN_BUCKET,
}

/** The algorithm of an arena's present rule, on the cells of its record. */
export function algorithmFor(arena: Arena, ticks: Ticks): Algorithm {
  return KINDS[arena.algorithm].make(arena, ticks)
}

/** Whether the addon can decide by the arena's algorithm. */
export const isNative = ({ algorithm }: Arena): boolean => KINDS[algorithm].isNative
