// Limiters with a configuration store: the first member counts by the default, others by the windows of policies.

import type { AsyncLimiter } from '../api/async-limiter.js'
import type { Clock } from '../core/clock.js'
import { MillraceError } from '../core/errors.js'
import { checkRule, type Rules } from '../core/rule.js'
import type { PoolSettings } from '../engines/pool/pool.js'
import { inlineLimiterOn, poolLimiterOn } from '../limiters/limiter-on.js'
import { ArenaSpace } from '../memory/arena-space.js'
import { alignedTo, placeArenas, planFor, type RuleMemory, seedsOf } from '../memory/arenas.js'
import type { OnFull } from '../memory/layout.js'
import { thisMachine } from '../shared-file/machine.js'
import { openNow } from '../shared-file/open-retries.js'
import { openSharedFile, type SharedFile } from '../shared-file/shared-file.js'
import { AsyncConfiguredLimiter, type AsyncMember } from './async-configured-limiter.js'
import type { ShareOfPolicies } from './configured-base.js'
import { ConfiguredLimiter } from './configured-limiter.js'
import type { ConfigSettings } from './options.js'
import { type OwningLimiter, PolicyChoice } from './policy-choice.js'
import type { MemberMaker } from './policy-plans.js'
import { type PolicyShape, policyShapeOf, shownTag } from './policy-shape.js'

/** A limiter's memory and place, before it has a configuration store. */
export interface Foundation {
  readonly memory: RuleMemory
  readonly clock: Clock
  readonly file: SharedFile | undefined
  /** Only with `engine: 'pool'`. */
  readonly settings: PoolSettings | undefined
  readonly onFull: OnFull
}

/** The memory for windows that policies may have. @throws MillraceError `ERR_MILLRACE_ARENA_TOO_LARGE` */
export function reserveSpace(rules: Rules, maxKeys: number, maxWindows: number): ArenaSpace {
  const usual = [checkRule({ limit: 1, window: '60ms' })] as [Rules[0], ...Rules[0][]] // of 60 buckets
  const each = Math.max(planFor(rules, maxKeys).words, planFor(usual, maxKeys).words)
  return ArenaSpace.create((maxWindows - 1) * (each + PAGE_WORDS), 'maxWindows', maxWindows)
}
const PAGE_WORDS = 1_024

/** Without a space, the counts are in files beside the first one. */
export function configuredLimiterOn(
  foundation: Foundation,
  settings: ConfigSettings,
  share: ShareOfPolicies,
): ConfiguredLimiter | AsyncLimiter {
  const { memory, clock, file, settings: pool } = foundation
  const shape = policyShapeOf(settings.rules)
  const place =
    file === undefined ? new SpacePlace(foundation, share) : new FilePlace(foundation, file, share)
  const choiceOf = <L extends OwningLimiter>(limiter: L, on: On<L>) => {
    const maker: MemberMaker<L> = {
      refusalOf: (other) => place.refusalOf(other),
      make: (other) => place.make(other, on),
    }
    return new PolicyChoice({ limiter, shape }, maker, settings)
  }
  if (pool === undefined) {
    const first = inlineLimiterOn(memory, clock, file)
    return orClose(first, () => new ConfiguredLimiter(choiceOf(first, inlineLimiterOn), share))
  }
  const on: On<AsyncMember> = (own, ownClock, ownFile) => poolLimiterOn(own, ownClock, pool, ownFile)
  const first = on(memory, clock, file)
  return orClose(first, () => new AsyncConfiguredLimiter(choiceOf(first, on), share))
}

type On<L> = (memory: RuleMemory, clock: Clock, file?: SharedFile) => L

/** Counts in shared memory. */
class SpacePlace {
  readonly #foundation: Foundation
  readonly #space: ArenaSpace
  readonly #share: ShareOfPolicies

  constructor(foundation: Foundation, share: ShareOfPolicies) {
    this.#foundation = foundation
    this.#space = new ArenaSpace(share.space)
    this.#share = share
  }

  refusalOf({ rules, tag }: PolicyShape): string | undefined {
    const words = wordsFor(rules, this.#share.maxKeys)
    if (typeof words === 'string') return words
    if (this.#space.has(tag) || words <= this.#space.freeWords) return undefined
    return `one that needs less memory: ${4 * words} bytes for all keys, and ${4 * this.#space.freeWords} are left (the options maxWindows and maxKeys, or a coarser granularity)`
  }

  make<L>({ rules, tag }: PolicyShape, on: On<L>): L {
    const { memory, clock } = this.#foundation
    const own = alignedTo(this.#share.aheadMs, rules)
    const plan = planFor(own, this.#share.maxKeys)
    const from = this.#space.area(tag, plan.words)
    if (from === undefined)
      throw new MillraceError(
        'ERR_MILLRACE_POLICY_TOO_LARGE',
        'policy',
        rules[0].windowMs,
        'memory that no other thread has taken',
      )
    const arenas = placeArenas(this.#space.buffer, from, plan, own, memory.arenas[0])
    return on({ arenas, names: namesOf(rules), nearLimit: memory.nearLimit }, clock)
  }
}

/** Counts in a file of its own for each window, beside the first file. */
class FilePlace {
  readonly #foundation: Foundation
  readonly #file: SharedFile
  readonly #maxKeys: number

  constructor(foundation: Foundation, file: SharedFile, { maxKeys }: ShareOfPolicies) {
    this.#foundation = foundation
    this.#file = file
    this.#maxKeys = maxKeys
  }

  refusalOf({ rules }: PolicyShape): string | undefined {
    const words = wordsFor(rules, this.#maxKeys)
    return typeof words === 'string' ? words : undefined
  }

  make<L>({ rules, tag }: PolicyShape, on: On<L>): L {
    const { memory, onFull } = this.#foundation
    const path = `${this.#file.place.path}.${shownTag(tag)}`
    const options = { rules, maxKeys: this.#maxKeys, onFull, seeds: seedsOf(memory.arenas[0]) }
    const opened = openNow(path, openSharedFile(path, options, thisMachine))
    return on(
      { arenas: opened.arenas, names: namesOf(rules), nearLimit: memory.nearLimit },
      opened.clock,
      opened,
    )
  }
}

/** The words that rules need, or why no limiter can have them. */
function wordsFor(rules: Rules, maxKeys: number): number | string {
  try {
    return planFor(rules, maxKeys).words
  } catch (error) {
    if (error instanceof MillraceError) return `one that needs less memory: ${error.message}`
    throw error
  }
}

/** Creates the limiter that chooses among members. If that fails, nothing of the first member is left. */
function orClose<T>(first: { close(): Promise<void> }, make: () => T): T {
  try {
    return make()
  } catch (error) {
    void first.close()
    throw error
  }
}

const namesOf = (rules: Rules): RuleMemory['names'] => rules.map(({ name }) => name) as [string, ...string[]]
