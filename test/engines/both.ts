import {
  type AsyncLimiter,
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type ManualClock,
  manualClock,
  type PoolOptions,
} from 'millrace'
import { START_MS } from '../limiter/support.js'

export const ENGINES = ['inline', 'pool'] as const
export type Engine = (typeof ENGINES)[number]

/** A test that awaits every result works with either. */
export type Either = Limiter | AsyncLimiter

export interface Made<T extends Either> extends AsyncDisposable {
  readonly clock: ManualClock
  readonly limiter: T
}

/** A pool limiter of 5 a minute with granules of a second, on a manual clock. */
export function pooled(options: Partial<LimiterOptions> = {}, pool: PoolOptions = {}): Made<AsyncLimiter> {
  return made((clock) => createLimiter({ ...DEFAULTS, clock, ...options, engine: 'pool', pool }))
}

/** The same limiter with either engine. */
export function decidedBy(engine: Engine, options: Partial<LimiterOptions> = {}): Made<Either> {
  if (engine === 'pool') return pooled(options, { minThreads: 2, maxThreads: 2 })
  return made((clock) => createLimiter({ ...DEFAULTS, clock, ...options }))
}

const DEFAULTS = { limit: 5, window: '1m', granularity: '1s', maxKeys: 20 } as const

function made<T extends Either>(make: (clock: ManualClock) => T): Made<T> {
  const clock = manualClock(START_MS)
  const limiter = make(clock)
  return { clock, limiter, [Symbol.asyncDispose]: () => limiter.close() }
}
