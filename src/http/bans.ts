import type { AsyncLimiter } from '../async-limiter.js'
import type { Clock } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import { isUndecided } from '../core/decision-source.js'
import { millisecondsAs } from '../core/duration.js'
import { createLimiter } from '../create.js'
import type { Limiter } from '../limiter.js'
import { checkBan } from './options.js'

const REFUSALS = 'refusals'

interface BanOptions {
  readonly ban?: unknown
  readonly maxKeys?: number | undefined
  readonly clock?: Clock | undefined
}

/** The rules of all routes. */
interface Limits {
  readonly longestWindowMs: number
}

/** Whether a decision about cost 0 says that its key is blocked. One by an outage says nothing about the key. */
const isBlock = ({ allowed, source }: Decision): boolean => !allowed && !isUndecided(source)

/**
 * Bans keys that were refused too often: blocks them in their limiter. So a ban holds wherever the limiter
 * does, and an admitted request pays nothing for it. The refusals are counted in a limiter of this process.
 */
export class Bans {
  readonly #refusals: Limiter
  readonly #limits: Limits
  readonly #forMs: number
  /** The window in which refusals count: the longest of the rules. */
  #windowMs: number

  /** Undefined without the option `ban`. The refusals of a key count for the longest window of all rules. */
  static of(options: BanOptions, limits: Limits): Bans | undefined {
    const ban = checkBan(options.ban)
    return ban && new Bans(ban.after, ban.forMs, options, limits)
  }

  private constructor(after: number, forMs: number, { maxKeys, clock }: BanOptions, limits: Limits) {
    this.#windowMs = limits.longestWindowMs
    const options = { ...(maxKeys !== undefined && { maxKeys }), ...(clock !== undefined && { clock }) }
    this.#refusals = createLimiter({
      name: REFUSALS,
      limit: after,
      window: millisecondsAs(this.#windowMs),
      ...options,
    })
    this.#limits = limits
    this.#forMs = forMs
  }

  /** Whether the refused key is banned. If not, counts the refusal, and bans the key for the next requests. */
  judge(limiter: Limiter | AsyncLimiter, key: string): boolean | Promise<boolean> {
    // Cost 0 is refused only by a block.
    const peeked = limiter.peek(key, 0)
    if (peeked instanceof Promise)
      return peeked.then((later) => this.#judgeLater(limiter, key, isBlock(later)))
    if (isBlock(peeked)) return true
    if (this.#isLast(key)) limiter.block(key, this.#forMs)
    return false
  }

  /** Forgets the refusals of a key. */
  forget(key: string): void {
    this.#refusals.clear(key)
  }

  close(): Promise<void> {
    return this.#refusals.close()
  }

  async #judgeLater(limiter: Limiter | AsyncLimiter, key: string, isBanned: boolean): Promise<boolean> {
    if (!isBanned && this.#isLast(key)) await limiter.block(key, this.#forMs)
    return isBanned
  }

  /** Counts a refusal. Whether it is the last one before the ban. */
  #isLast(key: string): boolean {
    const { longestWindowMs } = this.#limits // a route may have brought its own rules since
    if (longestWindowMs > this.#windowMs) {
      this.#refusals.update(REFUSALS, { window: millisecondsAs(longestWindowMs) })
      this.#windowMs = longestWindowMs
    }
    const { allowed, remaining } = this.#refusals.check(key)
    if (allowed && remaining > 0) return false
    this.#refusals.clear(key) // after the ban, it counts from the beginning
    return true
  }
}
