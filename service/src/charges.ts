// The charges of decisions and reservations, which callers hold as tokens.
import { type Decision, MillraceError } from 'millrace'
import { receiptsOf } from 'millrace/internal'
import { isUndecided, ServiceError, undecided } from './http/problem.js'
import { type AnyLimiter, type Limiters, limiterOf } from './limiters.js'
import type { Charge, Signer } from './security/signer.js'

/** Gives back and settles charges by their tokens, each once. */
export class Charges {
  readonly #limiters: Limiters
  /** Admits each identifier of a token once. */
  readonly #once: AnyLimiter
  readonly #signer: Signer
  /** Names this process, if the counts are in its memory. */
  readonly #place: string | undefined

  constructor(limiters: Limiters, once: AnyLimiter, signer: Signer, place: string | undefined) {
    this.#limiters = limiters
    this.#once = once
    this.#signer = signer
    this.#place = place
  }

  /** A token of the charge of a decision; undefined if nothing was charged. */
  tokenOf(limiter: string, key: string, cost: number, decision: Decision): string | undefined {
    const receipt = receiptsOf(this.#limiters.get(limiter)!)?.receiptOf(decision)
    if (receipt === undefined) return undefined
    const place = this.#place === undefined ? {} : { place: this.#place }
    return this.#signer.tokenOf({ limiter, key, cost, receipt, ...place })
  }

  /** The key of a token. @throws ServiceError for a token that is wrong */
  keyOf(token: string, field: string): string {
    return this.#signer.chargeOf(token, field).key
  }

  /** Gives back a charge. Resolves with the units: 0 if it was given back or settled before. */
  async refund(token: string, field: string): Promise<number> {
    const charge = this.#signer.chargeOf(token, field)
    if (!(await this.#isFirst(charge))) return 0
    return this.#orAgain(charge, async () => {
      const { limiter, reservation } = await this.#reservationOf(charge)
      return reservation === undefined ? 0 : await limiter.refund(reservation.decision as never)
    })
  }

  /** Settles a reservation. Resolves with the units charged in addition; below 0: given back. */
  async commit(token: string, field: string, cost: number): Promise<number> {
    const charge = this.#signer.chargeOf(token, field)
    if (!(await this.#isFirst(charge)))
      throw new ServiceError(
        409,
        'ERR_MILLRACE_SETTLED',
        `${field}: expected a reservation that is not settled`,
        { field },
      )
    return this.#orAgain(charge, async () => {
      const { limiter, reservation } = await this.#reservationOf(charge)
      if (reservation !== undefined) return (await reservation.commit(cost)) + 0
      const more = cost - charge.cost
      return more > 0 && (await limiter.penalize(charge.key, more)) ? more : 0
    })
  }

  async #isFirst({ id }: Charge): Promise<boolean> {
    const decision = await this.#once.check(id)
    if (isUndecided(decision))
      throw new ServiceError(503, 'ERR_MILLRACE_UNDECIDED', undecided(decision, 'check').detail, {
        mayBeCharged: false,
      })
    return decision.allowed
  }

  /** A change that was not made can be tried again. */
  async #orAgain<T>({ id }: Charge, change: () => Promise<T>): Promise<T> {
    try {
      return await change()
    } catch (error) {
      if (error instanceof MillraceError && !error.mayBeCharged) await this.#once.clear(id)
      throw error
    }
  }

  /** What settles a charge; undefined: the memory that had it is gone, or the window of its policy. */
  async #reservationOf({ limiter: name, key, receipt, place }: Charge) {
    const [, limiter] = limiterOf(this.#limiters, name)
    const receipts = receiptsOf(limiter)
    if (receipts === undefined || place !== this.#place) return { limiter, reservation: undefined }
    let reservation = receipts.reservationOf(receipt)
    if (reservation === undefined) {
      await limiter.peek(key) // makes the windows of the key's policy
      reservation = receipts.reservationOf(receipt)
    }
    return { limiter, reservation }
  }
}
