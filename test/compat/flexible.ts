// The limiter in memory of rate-limiter-flexible and ours, to be compared.
import { type FlexibleOptions, RateLimiterMillrace } from 'millrace/compat/rate-limiter-flexible'
import { RateLimiterMemory as OriginalLimiter, RateLimiterRes } from 'rate-limiter-flexible'
import * as assert from 'uvu/assert'

/** What both have. */
export type AnyLimiter = Pick<
  OriginalLimiter,
  'consume' | 'penalty' | 'reward' | 'get' | 'set' | 'block' | 'delete' | 'getKey' | 'parseKey'
> &
  Required<Omit<FlexibleOptions, 'insuranceLimiter'>> & {
    readonly msDuration: number
    readonly msBlockDuration: number
  }

export interface Kind {
  readonly name: string
  readonly create: (options: FlexibleOptions) => AnyLimiter
}

export const original: Kind = {
  name: 'the original',
  create: (options) => new OriginalLimiter(options) as unknown as AnyLimiter,
}
export const fixed: Kind = {
  name: 'Millrace, fixed window',
  create: (options) => new RateLimiterMillrace({ ...options, algorithm: 'fixed-window' }) as AnyLimiter,
}
export const sliding: Kind = {
  name: 'Millrace',
  create: (options) => new RateLimiterMillrace(options) as AnyLimiter,
}
/** [remainingPoints, msBeforeNext, consumedPoints, isFirstInDuration], after 'refused' if it was rejected. */
export type Shown = (string | number | boolean)[] | null

export const shownOf = (res: RateLimiterRes | null): Shown => {
  if (res === null) return null
  assert.instance(res, RateLimiterRes)
  return [res.remainingPoints, res.msBeforeNext, res.consumedPoints, res.isFirstInDuration]
}

export const settled = (answer: Promise<RateLimiterRes | null>): Promise<Shown> =>
  answer.then(shownOf, (res) => {
    if (!(res instanceof RateLimiterRes)) throw res
    return ['refused', ...shownOf(res)!]
  })
