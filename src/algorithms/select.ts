import type { Ticks } from '../core/ticks.js'
import type { Arena } from '../memory/arena.js'
import type { Algorithm } from './algorithm.js'
import { SlidingWindow } from './sliding-window.js'

/** The algorithm of an arena's rule. */
export function algorithmFor({ words, shape, edge, originMs }: Arena, ticks: Ticks): Algorithm {
  return new SlidingWindow(words, shape, edge, originMs, ticks)
}
