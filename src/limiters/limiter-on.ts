import { createRequire } from 'node:module'
import type { Clock } from '../core/clock.js'
import { lazily } from '../core/lazily.js'
import type { OwnDecision } from '../engines/engine.js'
import type { PoolSettings } from '../engines/pool/pool.js'
import type { RuleMemory } from '../memory/arenas.js'
import { unitIn } from '../memory/unit.js'
import type { InlineLimiter } from './inline-limiter.js'
import type { LimiterFile } from './memory-backend.js'
import { OneRuleLimiter } from './one-rule-limiter.js'
import type { PoolLimiter } from './pool-limiter.js'

const require = createRequire(import.meta.url)
const poolLimiter = lazily(
  () => require('./pool-limiter.js') as typeof import('./pool-limiter.js'),
  'creation',
)
const rulesLimiter = lazily(() => require('./rules-limiter.js') as typeof import('./rules-limiter.js'))
const unitLimiter = lazily(() => require('./unit-limiter.js') as typeof import('./unit-limiter.js'))

/** A limiter that decides on the calling thread, by any rules. */
export type AnyInlineLimiter = InlineLimiter<OwnDecision>

/** Creates the limiter of this memory on the calling thread. If that fails, the file is released. */
export function inlineLimiterOn(memory: RuleMemory, clock: Clock, file?: LimiterFile): AnyInlineLimiter {
  return orRelease(file, () => {
    const [arena, ...others] = memory.arenas
    if (others.length > 0)
      return new (rulesLimiter().RulesLimiter)(memory, clock, file) as unknown as AnyInlineLimiter
    const unit = unitIn(arena.words)
    const limiter =
      unit === undefined
        ? new OneRuleLimiter(memory, clock, file)
        : new (unitLimiter().UnitLimiter)(memory, unit, clock, file)
    return limiter as unknown as AnyInlineLimiter
  })
}

/** Creates the limiter of this memory that decides on a pool. If that fails, the file is released. */
export function poolLimiterOn(
  memory: RuleMemory,
  clock: Clock,
  settings: PoolSettings,
  file?: LimiterFile,
): PoolLimiter {
  return orRelease(file, () => {
    const { PoolLimiter } = poolLimiter()
    return new PoolLimiter(memory, clock, settings, file)
  })
}

function orRelease<T>(file: LimiterFile | undefined, make: () => T): T {
  try {
    return make()
  } catch (error) {
    file?.release()
    throw error
  }
}
