import { availableParallelism } from 'node:os'
import { checkOptions } from './checks.js'
import { MillraceError } from './core/errors.js'
import type { PoolSettings } from './engines/pool.js'

/** The threads of `engine: 'pool'`. */
export interface PoolOptions {
  /** Threads that stay when there is nothing to do: 1 or more. @default 1 */
  minThreads?: number
  /**
   * Threads at most, of which more than `minThreads` run while one can't keep up: `minThreads` or more.
   * @default as many as there are processors beside the calling thread's, but at most 4, at least `minThreads`
   */
  maxThreads?: number
  /** Keys that may wait for an answer: more is refused with `ERR_MILLRACE_OVERLOADED`. @default 65_536 */
  maxPending?: number
  /** What a thread may use, as `new Worker` takes it. @default what Node allows */
  resourceLimits?: {
    maxOldGenerationSizeMb?: number
    maxYoungGenerationSizeMb?: number
    codeRangeSizeMb?: number
    stackSizeMb?: number
  }
}

const DEFAULT_MAX_PENDING = 65_536
const DEFAULT_MOST_THREADS = 4
const LIMITS = ['maxOldGenerationSizeMb', 'maxYoungGenerationSizeMb', 'codeRangeSizeMb', 'stackSizeMb']

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function checkPool(options: PoolOptions = {}): PoolSettings {
  checkOptions(options, ['minThreads', 'maxThreads', 'maxPending', 'resourceLimits'], 'pool')
  const { minThreads = 1, maxPending = DEFAULT_MAX_PENDING, resourceLimits } = options
  checkCount('pool.minThreads', minThreads, 1)
  const spare = Math.min(DEFAULT_MOST_THREADS, availableParallelism() - 1)
  const { maxThreads = Math.max(minThreads, spare) } = options
  checkCount('pool.maxThreads', maxThreads, minThreads)
  checkCount('pool.maxPending', maxPending, 1)
  if (resourceLimits !== undefined) checkLimits(resourceLimits)
  return { minThreads, maxThreads, maxPending, resourceLimits }
}

function checkLimits(limits: object): void {
  checkOptions(limits, LIMITS, 'pool.resourceLimits')
  for (const [name, value] of Object.entries(limits)) {
    if (typeof value === 'number' && value > 0) continue
    throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', `pool.resourceLimits.${name}`, value, 'megabytes')
  }
}

function checkCount(option: string, value: unknown, least: number): void {
  if (Number.isInteger(value) && (value as number) >= least) return
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, value, `an integer of ${least} or more`)
}
