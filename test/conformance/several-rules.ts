// A limiter of two rules, for the conformance suite and other tests of several rules.
import type { ErrorCode } from 'millrace'
import type { Either } from '../engines/both.js'
import { assertRejects } from '../limiter/support.js'
import type { Times } from './algorithms.js'
import type { Subject } from './suite.js'

export const BURST = { name: 'burst', limit: 5, window: '10s', granularity: '1s' } as const
export const HOURLY = { name: 'hourly', limit: 12, window: '1h', granularity: '1m' } as const

/** 5 in 10 seconds and 12 in an hour. */
export const TWO = { rules: [BURST, HOURLY], maxKeys: 20 } as const

/** After this many milliseconds, no charge of the burst limit counts. */
export const FREE_MS = 20_000

/** What each of the two rules must show. */
export function timesOf({ limiter, times }: Subject): { burst: Times; hourly: Times } {
  const [burst, hourly] = limiter.rules
  return { burst: times(burst), hourly: times(hourly) }
}

/** The units that the key has used, by each rule. */
export function usageOf(limiter: Either, key = 'key'): Promise<number[]> {
  const usages = limiter.rules.map(({ name }) => limiter.usage(key, undefined, { rule: name }))
  return Promise.all(usages)
}

/** The charges of `exhaustHourly`. */
export const EXHAUSTED = [
  [0, 5],
  [FREE_MS, 5],
  [2 * FREE_MS, 2],
] as const

/** Uses the whole hourly limit, and leaves the burst limit free. */
export async function exhaustHourly({ limiter, clock }: Pick<Subject, 'limiter' | 'clock'>): Promise<void> {
  for (const [, cost] of EXHAUSTED) {
    const { allowed } = await limiter.check('key', cost)
    if (!allowed) throw new Error('the hourly limit is used already')
    clock.advance(FREE_MS)
  }
}

/** Asserts that a call throws or rejects, with an error that names the option and what it expects. */
export const raised = (act: () => unknown, code: ErrorCode, option: string) =>
  assertRejects(async () => act(), code, option)
