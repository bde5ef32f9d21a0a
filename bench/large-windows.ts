/** Measurements of a limiter with a window of many buckets, on a manual clock. */
import { createLimiter, type LimiterOptions } from 'millrace'
import { SIDES, type Side } from './batches.js'
import type { Contender, Effort, Figures } from './benchmark.js'
import { randomOrder } from './keys.js'
import { median } from './statistics.js'
import { collectGarbage } from './timing.js'

/** Numbers of one-second buckets in a window, and the range sum of each. Up to 256 buckets have none. */
export const LARGE_SHAPES = [
  [60, undefined],
  [3_600, 'blocks'],
  [3_600, 'fenwick'],
  [86_400, 'blocks'],
  [86_400, 'fenwick'],
] as const

const SECOND_MS = 1_000
const DAY_SECONDS = 86_400
/** A window of a day with one-second buckets takes a third of a megabyte per key. */
export const KEYS = 50
const LIMIT = 4_000_000
/** Refusals per charge. The charge must not leave the window of a minute during them. */
const REFUSALS = 50

/** The figure is the median of short runs, because a busy machine interrupts a long one. */
const SLICES = 40

/** The limiter under test with its manual clock. */
interface Subject {
  readonly clock: { nowMs: number }
  readonly keys: readonly string[]
  readonly windowMs: number
  readonly granularityMs: number
  readonly check: (key: string) => boolean
  /** Decides by the handle of `keys[index]`. */
  readonly checkHandle: (index: number) => boolean
  readonly usage: () => number
  readonly retryAfterMs: () => number
  readonly penalize: (key: string) => void
}

/** Nanoseconds per admission. The clock moves one bucket after every key was admitted once. */
function admissions(subject: Subject, operations: number): number {
  return timed(operations, (i) => {
    const { keys } = subject
    if (i % keys.length === 0) subject.clock.nowMs += subject.granularityMs
    if (!subject.check(keys[i % keys.length]!)) throw new Error('an admission was refused')
  })
}

/** Like {@link admissions}, by handles. */
function handles(subject: Subject, operations: number): number {
  return timed(operations, (i) => {
    const index = i % subject.keys.length
    if (index === 0) subject.clock.nowMs += subject.granularityMs
    if (!subject.checkHandle(index)) throw new Error('an admission was refused')
  })
}

/** Nanoseconds per refusal of a key at its limit, one refusal per bucket. */
function refusals(subject: Subject, operations: number): number {
  let ns = 0
  const rounds = Math.ceil(operations / REFUSALS)
  for (let round = 0; round < rounds; round++) {
    const key = subject.keys[round % subject.keys.length]!
    subject.penalize(key)
    ns += timed(REFUSALS, () => {
      subject.clock.nowMs += subject.granularityMs
      if (subject.check(key)) throw new Error('a refusal was admitted')
    })
  }
  return ns / rounds
}

/** Nanoseconds per admission of a key that was idle for a random time of up to a day. */
function gaps(subject: Subject, operations: number): number {
  const seconds = randomOrder(DAY_SECONDS, operations)
  return timed(operations, (i) => {
    subject.clock.nowMs += seconds[i]! * SECOND_MS
    if (!subject.check(subject.keys[0]!)) throw new Error('an admission was refused')
  })
}

/** Nanoseconds per call of `usage` for half the window, on a key with charges all over the window. */
function usages(subject: Subject, operations: number): number {
  chargeAllOver(subject)
  return timed(operations, () => {
    if (subject.usage() === 0) throw new Error('no charge was counted')
  })
}

/** Nanoseconds per `retryAfterMs` of a cost that fits once half of the charges have left the window. */
function retries(subject: Subject, operations: number): number {
  chargeAllOver(subject)
  return timed(operations, () => {
    if (!(subject.retryAfterMs() > 1)) throw new Error('the cost would be admitted at once')
  })
}

/** Charges one key at a hundred moments, spread evenly over a window. */
function chargeAllOver(subject: Subject): void {
  for (let i = 0; i < 100; i++) {
    subject.clock.nowMs += subject.windowMs / 100
    subject.check(subject.keys[0]!)
  }
}

function timed(operations: number, act: (i: number) => void): number {
  const start = process.hrtime.bigint()
  for (let i = 0; i < operations; i++) act(i)
  return Number(process.hrtime.bigint() - start) / operations
}

const MEASUREMENTS = {
  admission: admissions,
  handle: handles,
  refusal: refusals,
  gap: gaps,
  usage: usages,
  retry: retries,
}
export type LargeFigure = keyof typeof MEASUREMENTS
export const LARGE_UNITS: Readonly<Record<LargeFigure, string>> = {
  admission: 'nanoseconds per admission',
  handle: 'nanoseconds per admission by handle',
  refusal: 'nanoseconds per refusal, each in a new bucket',
  gap: 'nanoseconds per admission after a random gap of up to a day',
  usage: 'nanoseconds per usage() of half the window',
  retry: 'nanoseconds per refusal with its retryAfterMs',
}

/**
 * A contender for one kind of window, in C++ or TypeScript if `side` is given. Each figure gets its own
 * limiter.
 */
export function largeWindow(
  name: string,
  options: Pick<LimiterOptions, 'window' | 'granularity' | 'rangeSum'>,
  figures: readonly LargeFigure[],
  keyCount = KEYS,
  side?: Side,
): Contender {
  const measure = ({ operations }: Effort): Figures => {
    if (side) process.env.MILLRACE_NATIVE = SIDES[side]
    const few = operations / 40
    const measured: Record<string, number> = {}
    for (const figure of figures) {
      const limit = figure === 'refusal' ? 10 : figure === 'retry' ? 100 : LIMIT
      const subject = subjectOf({ limit, maxKeys: keyCount, ...options }, limit)
      for (let i = 0; i < 5; i++) MEASUREMENTS[figure](subject, few)
      collectGarbage()
      measured[figure] = median(
        Array.from({ length: SLICES }, () => MEASUREMENTS[figure](subject, (4 * few) / SLICES)),
      )
    }
    return measured
  }
  return { name, measure }
}

function subjectOf(options: LimiterOptions, limit: number): Subject {
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
