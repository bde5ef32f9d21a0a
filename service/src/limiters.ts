import type { AsyncLimiter, Limiter } from 'millrace'
import { ServiceError } from './http/problem.js'

/** A limiter of either kind. */
export type AnyLimiter = Limiter | AsyncLimiter

/** The limiters of an engine by name. The first one is the default. */
export type Limiters = ReadonlyMap<string, AnyLimiter>

/** The name of a limiter, and the limiter. @throws ServiceError if there is none of the name */
export function limiterOf(limiters: Limiters, name: string | undefined): AnyLimiter {
  if (name === undefined) for (const limiter of limiters.values()) return limiter
  const limiter = limiters.get(name!)
  if (limiter !== undefined) return limiter
  const expected = `one of: ${[...limiters.keys()].join(', ')}`
  throw new ServiceError(400, 'ERR_MILLRACE_INVALID_OPTION', `limiter: expected ${expected}`, {
    field: 'limiter',
    expected,
  })
}
