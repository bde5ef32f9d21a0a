import type { AsyncLimiter } from '../async-limiter.js'
import { createLimiter } from '../create.js'
import type { Limiter } from '../limiter.js'
import { checkBan } from './options.js'

/**
 * Bans keys that were refused too often: blocks them in their limiter. So a ban holds wherever the limiter
 * does, and an admitted request pays nothing for it. The refusals are counted in a limiter of this process.
 */
export class Bans {
  readonly #refusals: Limiter
  readonly #forMs: number

  /** Undefined without the option `ban`. The refusals of a key count for the longest window of its rules. */
  static of(
    options: { readonly ban?: unknown; readonly maxKeys?: number | undefined },
    limits: { longestWindowMs(): number },
  ): Bans | undefined {
    const ban = checkBan(options.ban)
    return ban && new Bans(ban.after, limits.longestWindowMs(), ban.forMs, options.maxKeys)
  }

  private constructor(after: number, windowMs: number, forMs: number, maxKeys: number | undefined) {
    this.#refusals = createLimiter({ limit: after, window: windowMs, ...(maxKeys && { maxKeys }) })
    this.#forMs = forMs
  }

  /** Whether the refused key is banned. If not, counts the refusal, and bans the key for the next requests. */
  judge(limiter: Limiter | AsyncLimiter, key: string): boolean | Promise<boolean> {
    // Cost 0 is refused only by a block.
    const peeked = limiter.peek(key, 0)
    if (peeked instanceof Promise)
      return peeked.then(({ allowed }) => this.#judgeLater(limiter, key, !allowed))
    if (!peeked.allowed) return true
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
    const { allowed, remaining } = this.#refusals.check(key)
    if (allowed && remaining > 0) return false
    this.#refusals.clear(key) // after the ban, it counts from the beginning
    return true
  }
}
