import { availableParallelism } from 'node:os'
import { MillraceError } from '../core/errors.js'
import type { PoolSettings } from '../engines/pool/pool.js'
import { checkOptions } from './checks.js'

/** The worker threads of `engine: 'pool'`. */
export interface PoolOptions {
  /**
   * Threads that stay while idle: an integer from 1 to 1,024. More threads answer a sudden load sooner, and
   * cost memory.
   * @default 1
   */
  minThreads?: number | undefined
  /**
   * The most threads: an integer from `minThreads` to 1,024. More than `minThreads` run only while these
   * can't keep up.
   * @default the number of processors minus 1, but at most 4 and at least `minThreads`
   */
  maxThreads?: number | undefined
  /**
   * The most pending keys: 1 or more. While this many keys wait for a decision, further calls reject with
   * `ERR_MILLRACE_OVERLOADED`. A lower number bounds the latency under overload.
   * @default 65_536
   */
  maxPending?: number | undefined
  /**
   * Memory limits of each thread, in megabytes, as for `new Worker`.
   * @default the limits of Node.js
   */
  resourceLimits?:
    | {
        /** The main heap: 10 or more. */
        maxOldGenerationSizeMb?: number
        /** The heap of recent objects: more than 0. */
        maxYoungGenerationSizeMb?: number
        /** The memory of generated code: more than 0. */
        codeRangeSizeMb?: number
        /** The stack: 1 or more. */
        stackSizeMb?: number
      }
    | undefined
}

const DEFAULT_MAX_PENDING = 65_536
const DEFAULT_MOST_THREADS = 4
/** With more threads than this, Node.js may end the process. */
const MOST_THREADS = 1_024
const MOST_MB = 2 ** 20
/**
 * The smallest value of each limit, in megabytes; 0: any positive number. Measured on Node.js 20.19, 22.23,
 * 24.21 and 26.10 (2026-11-22): with an old generation of up to 2.2 MB the process dies while a thread
 * starts, with up to 5 no thread starts, and with up to 8 threads die at work.
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

/** Checks and copies the limits: later threads use them too. */
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
