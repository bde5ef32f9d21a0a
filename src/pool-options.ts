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
    /** 10 or more. */
    maxOldGenerationSizeMb?: number
    maxYoungGenerationSizeMb?: number
    codeRangeSizeMb?: number
    /** 1 or more. */
    stackSizeMb?: number
  }
}

const DEFAULT_MAX_PENDING = 65_536
const DEFAULT_MOST_THREADS = 4
/** With more threads than this, Node.js may end the process. */
const MOST_THREADS = 1_024
const MOST_MB = 2 ** 20
/**
 * The least megabytes of each limit; 0: any positive number. Tried on Node.js 20.19, 22.23, 24.21 and 26.10 (2026-11-22). Of the old
 * generation, up to 2.2 MB end the process while a thread starts, with up to 5 no thread starts, and with up to 8 threads die at work.
 */
const LEAST_MB: Readonly<Record<string, number>> = {
  maxOldGenerationSizeMb: 10,
  maxYoungGenerationSizeMb: 0,
  codeRangeSizeMb: 0,
  stackSizeMb: 1,
}

/** @throws MillraceError `ERR_MILLRACE_INVALID_OPTION` */
export function checkPool(options: PoolOptions = {}): PoolSettings {
  checkOptions(options, ['minThreads', 'maxThreads', 'maxPending', 'resourceLimits'], 'pool')
  const { minThreads = 1, maxPending = DEFAULT_MAX_PENDING, resourceLimits } = options
  checkCount('pool.minThreads', minThreads, 1, MOST_THREADS)
  const spare = Math.min(DEFAULT_MOST_THREADS, availableParallelism() - 1)
  const { maxThreads = Math.max(minThreads, spare) } = options
  checkCount('pool.maxThreads', maxThreads, minThreads, MOST_THREADS)
  checkCount('pool.maxPending', maxPending, 1, Number.MAX_SAFE_INTEGER)
  const limits = resourceLimits === undefined ? undefined : ownLimits(resourceLimits)
  return { minThreads, maxThreads, maxPending, resourceLimits: limits }
}

/** Copied: threads are started by them later, too. */
function ownLimits(limits: object): object {
  checkOptions(limits, Object.keys(LEAST_MB), 'pool.resourceLimits')
  const own = { ...limits }
  for (const [name, value] of Object.entries(own)) {
    const least = LEAST_MB[name]!
    if (value === undefined || (typeof value === 'number' && value > 0 && value >= least && value <= MOST_MB))
      continue
    const expected = `megabytes, ${least > 0 ? `${least} or more` : 'more than 0'}, at most ${MOST_MB}`
    throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', `pool.resourceLimits.${name}`, value, expected)
  }
  return own
}

function checkCount(option: string, value: unknown, least: number, most: number): void {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return
  const expected =
    most === MOST_THREADS ? `an integer from ${least} to ${most}` : `an integer of ${least} or more`
  throw new MillraceError('ERR_MILLRACE_INVALID_OPTION', option, value, expected)
}
