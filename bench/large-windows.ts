/** What a limiter with a window of many granules is timed at, by a clock that stands until it is moved. */
import { createLimiter, type LimiterOptions } from 'millrace'
import { SIDES, type Side } from './batches.js'
import type { Contender, Effort, Figures } from './benchmark.js'
import { randomOrder } from './keys.js'
import { median } from './statistics.js'
import { collectGarbage } from './timing.js'

const SECOND_MS = 1_000
const DAY_SECONDS = 86_400
/** A day by the second takes a third of a megabyte a key. */
export const KEYS = 50
const LIMIT = 4_000_000
/** Refusals for one charge: it must not leave the window of a minute meanwhile. */
const REFUSALS = 50

/** The median of short runs: of a long one, a busy machine would give half to others. */
const SLICES = 40

/** What is timed: by a clock that stands until it is moved. */
interface Play {
  readonly clock: { nowMs: number }
  readonly keys: readonly string[]
  readonly windowMs: number
  readonly granularityMs: number
  readonly check: (key: string) => boolean
  /** The key's own, by its place among the keys. */
  readonly checkHandle: (index: number) => boolean
  readonly usage: () => number
  readonly retryAfterMs: () => number
  readonly penalize: (key: string) => void
}

/** Nanoseconds an admission; every key once, then the next granule. */
function admissions(play: Play, operations: number): number {
  return timed(operations, (i) => {
    const { keys } = play
    if (i % keys.length === 0) play.clock.nowMs += play.granularityMs
    if (!play.check(keys[i % keys.length]!)) throw new Error('an admission was refused')
  })
}

/** The same by handles. */
function handles(play: Play, operations: number): number {
  return timed(operations, (i) => {
    const index = i % play.keys.length
    if (index === 0) play.clock.nowMs += play.granularityMs
    if (!play.checkHandle(index)) throw new Error('an admission was refused')
  })
}

/** Nanoseconds a refusal of a key at its limit, each in a granule of its own. */
function refusals(play: Play, operations: number): number {
  let ns = 0
  const rounds = Math.ceil(operations / REFUSALS)
  for (let round = 0; round < rounds; round++) {
    const key = play.keys[round % play.keys.length]!
    play.penalize(key)
    ns += timed(REFUSALS, () => {
      play.clock.nowMs += play.granularityMs
      if (play.check(key)) throw new Error('a refusal was admitted')
    })
  }
  return ns / rounds
}

/** Nanoseconds an admission of a key that nobody asked for during up to a day. */
function gaps(play: Play, operations: number): number {
  const seconds = randomOrder(DAY_SECONDS, operations)
  return timed(operations, (i) => {
    play.clock.nowMs += seconds[i]! * SECOND_MS
    if (!play.check(play.keys[0]!)) throw new Error('an admission was refused')
  })
}

/** Nanoseconds a question for the use of the last half of the window; in a window that was used all along. */
function usages(play: Play, operations: number): number {
  useAllAlong(play)
  return timed(operations, () => {
    if (play.usage() === 0) throw new Error('nothing was used')
  })
}

/** Nanoseconds of working out when the key will be admitted, once half of what it used has left the window. */
function retries(play: Play, operations: number): number {
  useAllAlong(play)
  return timed(operations, () => {
    if (!(play.retryAfterMs() > 1)) throw new Error('it would be admitted at once')
  })
}

/** Charges one key at a hundred moments, evenly spread over a window. */
function useAllAlong(play: Play): void {
  for (let i = 0; i < 100; i++) {
    play.clock.nowMs += play.windowMs / 100
    play.check(play.keys[0]!)
  }
}

function timed(operations: number, act: (i: number) => void): number {
  const start = process.hrtime.bigint()
  for (let i = 0; i < operations; i++) act(i)
  return Number(process.hrtime.bigint() - start) / operations
}

const PLAYS = {
  admission: admissions,
  handle: handles,
  refusal: refusals,
  gap: gaps,
  usage: usages,
  retry: retries,
}
export type LargeFigure = keyof typeof PLAYS
export const LARGE_UNITS: Readonly<Record<LargeFigure, string>> = {
  admission: 'nanoseconds an admission',
  handle: 'nanoseconds an admission by handle',
  refusal: 'nanoseconds a refusal, each in a granule of its own',
  gap: 'nanoseconds an admission after a random gap of up to a day',
  usage: 'nanoseconds of usage() over half the window',
  retry: 'nanoseconds of a refusal with its retryAfterMs',
}

/** One kind of window, and what is to be timed of it, by one side if it is told. Every figure on a limiter of its own. */
export function largeWindow(
  name: string,
  options: Pick<LimiterOptions, 'window' | 'granularity' | 'rangeSum'>,
  figures: readonly LargeFigure[],
  keyCount = KEYS,
  side?: Side,
): Contender {
  const measure = ({ operations }: Effort): Figures => {
    if (side) process.env.MILLRACE_NATIVE = SIDES[side]
    const few = operations / 20
    const found: Record<string, number> = {}
    for (const figure of figures) {
      const limit = figure === 'refusal' ? 10 : figure === 'retry' ? 100 : LIMIT
      const play = playOf({ limit, maxKeys: keyCount, ...options }, limit)
      for (let i = 0; i < 5; i++) PLAYS[figure](play, few)
      collectGarbage()
      found[figure] = median(Array.from({ length: SLICES }, () => PLAYS[figure](play, (4 * few) / SLICES)))
    }
    return found
  }
  return { name, measure }
}

function playOf(options: LimiterOptions, limit: number): Play {
  const clock = { nowMs: 0, now: () => clock.nowMs }
  const limiter = createLimiter({ ...options, clock })
  const { windowMs, granularityMs } = limiter.rule
  const keys = Array.from({ length: options.maxKeys! }, (_, i) => `user:${i}`)
  const made = keys.map((key) => limiter.handle(key))
  return {
    clock,
    keys,
    windowMs,
    granularityMs,
    check: (key) => limiter.check(key).allowed,
    checkHandle: (index) => limiter.check(made[index]!).allowed,
    usage: () => limiter.usage(keys[0]!, windowMs / 2),
    retryAfterMs: () => limiter.check(keys[0]!, limit / 2).retryAfterMs,
    penalize: (key) => void limiter.penalize(key, limit),
  }
}
