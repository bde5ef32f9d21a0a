// The limiters of an engine, by name.
import type { AsyncLimiter, CheckOptions, Decision, Limiter, LimiterRule } from 'millrace'
import { type Receipt, type Receipts, receiptsOf } from 'millrace/internal'
import { ServiceError } from './http/problem.js'

type Used =
  | ('check' | 'peek' | 'refund' | 'penalize' | 'block' | 'unblock' | 'clear')
  | ('usage' | 'stats' | 'ready' | 'close' | 'rules')

/** A limiter of either kind, as far as the service uses it. */
export type AnyLimiter = Pick<Limiter, Used> | Pick<AsyncLimiter, Used>

/** The limiters of an engine by name. The first one is the default. */
export type Limiters = ReadonlyMap<string, AnyLimiter>

/** A limiter and its name. @throws ServiceError if there is none of the name */
export function limiterOf(limiters: Limiters, name: string | undefined): [name: string, limiter: AnyLimiter] {
  if (name === undefined) for (const first of limiters) return first
  const limiter = limiters.get(name!)
  if (limiter !== undefined) return [name!, limiter]
  const expected = `one of: ${[...limiters.keys()].join(', ')}`
  throw new ServiceError(400, 'ERR_MILLRACE_INVALID_OPTION', `limiter: expected ${expected}`, {
    field: 'limiter',
    expected,
  })
}

/**
 * A limiter that counts in memory by policies of a store that answers by promises. Each call waits until the policy of
 * its key is known, for as long as the limiter waits.
 */
export class LoadingLimiter implements Pick<AsyncLimiter, Exclude<Used, 'refund'>>, Receipts {
  readonly #limiter: Limiter

  constructor(limiter: Limiter) {
    this.#limiter = limiter
  }

  get rules(): readonly LimiterRule[] {
    return this.#limiter.rules
  }

  check(key: string, cost?: number, options?: CheckOptions): Promise<Decision> {
    return this.#limiter.checkAsync(key, cost, options)
  }

  peek(key: string, cost?: number, options?: CheckOptions): Promise<Decision> {
    return this.#loaded(key, (limiter) => limiter.peek(key, cost, options))
  }

  refund(what: Decision): Promise<number>
  refund(what: string, cost: number): Promise<number>
  async refund(what: Decision | string, cost?: number): Promise<number> {
    if (typeof what !== 'string') return this.#limiter.refund(what)
    return this.#loaded(what, (limiter) => limiter.refund(what, cost!))
  }

  penalize(key: string, cost: number): Promise<boolean> {
    return this.#loaded(key, (limiter) => limiter.penalize(key, cost))
  }

  block(key: string, ms: number): Promise<boolean> {
    return this.#loaded(key, (limiter) => limiter.block(key, ms))
  }

  unblock(key: string): Promise<boolean> {
    return this.#loaded(key, (limiter) => limiter.unblock(key))
  }

  clear(key: string): Promise<void> {
    return this.#loaded(key, (limiter) => limiter.clear(key))
  }

  usage(...args: Parameters<Limiter['usage']>): Promise<number> {
    return this.#loaded(args[0] as string, (limiter) => limiter.usage(...args))
  }

  async stats(): ReturnType<AsyncLimiter['stats']> {
    return this.#limiter.stats()
  }

  ready(): Promise<void> {
    return this.#limiter.ready()
  }

  close(): Promise<void> {
    return this.#limiter.close()
  }

  receiptOf(decision: Decision): Receipt | undefined {
    return receiptsOf(this.#limiter)!.receiptOf(decision)
  }

  reservationOf(receipt: Receipt): ReturnType<Receipts['reservationOf']> {
    return receiptsOf(this.#limiter)!.reservationOf(receipt)
  }

  /** A decision of cost 0 charges nothing. */
  async #loaded<T>(key: string, act: (limiter: Limiter) => T): Promise<T> {
    await this.#limiter.checkAsync(key, 0)
    return act(this.#limiter)
  }
}
