// Two arenas that are equal at first, one for each side, with clocks that return equal readings.
import { type Clock, createLimiter, type Limiter, type LimiterOptions } from 'millrace'
import { withSeed } from '../attack/seeded.js'
import { onSide, type Side } from './sides.js'

/**
 * A clock that advances at every reading. A side that reads it more often gets other readings from then on.
 */
export class CountedClock implements Clock {
  ms: number
  stepMs = 0
  constructor(ms: number) {
    this.ms = ms
  }
  now(): number {
    this.ms += this.stepMs
    return this.ms
  }
}

export interface Half {
  readonly side: Side
  readonly limiter: Limiter
  readonly clock: CountedClock
  readonly words: Int32Array
}

export type Pair = readonly [Half, Half]

export function makePair(options: LimiterOptions, startMs: number, seed: readonly [number, number]): Pair {
  const half = (side: Side): Half => {
    const clock = new CountedClock(startMs)
    const attach = () => withSeed(createLimiter({ ...options, clock }), seed, clock)
    const limiter = onSide(side, attach)
    return { side, limiter, clock, words: new Int32Array(limiter.share().buffer) }
  }
  return [half('typescript'), half('addon')]
}

/**
 * The first word in which the two arenas differ, or undefined. Writes the statistics to both arenas before.
 */
export function firstDifference([one, other]: Pair): string | undefined {
  for (const { limiter } of [one, other]) limiter.stats()
  const bytes = ({ words }: Half) => Buffer.from(words.buffer, words.byteOffset, words.byteLength)
  if (bytes(one).equals(bytes(other))) return undefined
  const index = one.words.findIndex((word, i) => word !== other.words[i])
  return `word ${index} is ${one.words[index]} by ${one.side} and ${other.words[index]} by ${other.side}`
}
