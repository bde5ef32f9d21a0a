import { createLimiter, type MillraceError, manualClock, type Policy } from 'millrace'
import { memoryConfig } from 'millrace/config/memory'

export const DEFAULT: Policy = { limit: 2, window: '1m' }

/** A limiter with policies, on a clock of its own. */
export function limiterWith(policies: Record<string, Policy> = {}, options: object = {}) {
  const clock = manualClock(1_000_000)
  const config = memoryConfig(policies)
  const errors: MillraceError[] = []
  const limiter = createLimiter({
    config,
    default: DEFAULT,
    clock,
    maxKeys: 1_000,
    onConfigError: (error) => void errors.push(error),
    ...options,
  })
  const admitted = (key: string) => {
    let count = 0
    while (limiter.check(key).allowed) count++
    return count
  }
  return { limiter, config, clock, errors, admitted }
}
