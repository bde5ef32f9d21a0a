import type { AsyncLimiter } from '../api/async-limiter.js'
import type { Limiter } from '../api/limiter.js'
import type { Decision } from '../core/decision.js'
import { isUndecided } from '../core/decision-source.js'
import { type BlockState, blockOf } from './blocks.js'
import { type CountOptions, KeyCounts, type Windows } from './key-counts.js'
import { checkBan } from './options.js'

/** A request that its limiter has refused. */
export interface RefusedCall {
  readonly limiter: Limiter | AsyncLimiter
  readonly key: string
  readonly decision: Decision
  /** Decides the same request again, without a charge. */
  peek(): Decision | Promise<Decision>
}

/** What the answer to the client shows. */
export interface Judgement {
  readonly isBanned: boolean
  /** The refusal. If it begins a ban, its figures are those of the ban. */
  readonly decision: Decision
}

/**
 * Bans keys that were refused too often: blocks them in their limiter. So a ban holds wherever the limiter
 * does, and an admitted request pays nothing for it. The refusals are counted in this process.
 */
export class Bans {
  readonly #refusals: KeyCounts
  readonly #forMs: number

  /** Undefined without the option `ban`. */
  static of(options: CountOptions & { readonly ban?: unknown }, windows: Windows): Bans | undefined {
    const ban = checkBan(options.ban)
    return ban && new Bans(ban.after, ban.forMs, options, windows)
  }

  private constructor(after: number, forMs: number, options: CountOptions, windows: Windows) {
    this.#refusals = new KeyCounts('refusals', after, options, windows)
    this.#forMs = forMs
  }

  /** Whether the refused key is banned. If not, counts the refusal, and bans the key for the next requests. */
  judge(call: RefusedCall): Judgement | Promise<Judgement> {
    const state = blockOf(call.limiter, call.key)
    return state instanceof Promise
      ? state.then((later) => this.#conclude(call, later))
      : this.#conclude(call, state)
  }

  /** Forgets the refusals of a key. */
  forget(key: string): void {
    this.#refusals.forget(key)
  }

  close(): Promise<void> {
    return this.#refusals.close()
  }

  #conclude(call: RefusedCall, state: BlockState): Judgement | Promise<Judgement> {
    const { limiter, key, decision } = call
    if (state === true) return { isBanned: true, decision }
    if (!this.#isLast(call)) return { isBanned: false, decision }
    const blocked = limiter.block(key, this.#forMs)
    return blocked instanceof Promise ? blocked.then(() => begun(call)) : begun(call)
  }

  /** Counts a refusal. Whether it is the last one before the ban. */
  #isLast({ limiter, key, decision }: RefusedCall): boolean {
    const { allowed, remaining } = this.#refusals.of(limiter, decision).check(key)
    if (allowed && remaining > 0) return false
    this.#refusals.forget(key) // after the ban, it counts from the beginning
    return true
  }
}

/** The refusal that begins a ban. */
function begun(call: RefusedCall): Judgement | Promise<Judgement> {
  const judgementOf = (again: Decision): Judgement => {
    const isRefused = !again.allowed && !isUndecided(again.source)
    return { isBanned: false, decision: isRefused ? again : call.decision }
  }
  const again = call.peek()
  return again instanceof Promise ? again.then(judgementOf) : judgementOf(again)
}
