import { type AsyncLimiter, type Decision, MillraceError } from 'millrace'
import { Account, type Entry } from './account.js'

/** The limit of every key, in a window that does not end during the run. */
export const LIMIT = 400
/** Keys with constant load. Keys with odd numbers get refunds. */
const HOT_KEYS = 12
const MIXED_KEYS = 3_000
/** Fewer than fit in the table: an evicted key would look like one with lost charges. */
const MOST_NEW_KEYS = 300_000
const MOST_BATCH_KEYS = 700
const BATCH_SHARE = 0.02
const REFUND_SHARE = 0.1

export type Random = () => number

/** An admission that has not been refunded. */
interface Refundable {
  readonly key: string
  readonly decision: Decision
  readonly cost: number
}

/** Sends requests to a limiter in every turn of the event loop, and keeps an account per key. */
export class Load {
  readonly accounts = new Map<string, Account>()
  /** Pending calls; all must settle. */
  inFlight = 0
  /** The number of decisions received. */
  decided = 0
  /** Calls that were rejected because their worker died. */
  lost = 0
  readonly complaints: string[] = []
  readonly #limiter: AsyncLimiter
  readonly #maxInFlight: number
  readonly #random: Random
  readonly #refundable: Refundable[] = []
  #onDecision: ((atMs: number) => void)[] = []
  #newKeys = 0
  #isOn = true
  #turns: Promise<void>

  constructor(limiter: AsyncLimiter, maxInFlight: number, random: Random) {
    this.#limiter = limiter
    this.#maxInFlight = maxInFlight
    this.#random = random
    this.#turns = this.#run()
  }

  pause(): Promise<void> {
    this.#isOn = false
    return this.#turns
  }

  resume(): void {
    this.#isOn = true
    this.#turns = this.#run()
  }

  /** Resolves with the time of the next decision. */
  nextDecision(): Promise<number> {
    return new Promise((resolve) => this.#onDecision.push(resolve))
  }

  /** Counts a call other than a decision. Resolves to false if its worker died. */
  async settles(call: Promise<unknown>): Promise<boolean> {
    this.inFlight++
    try {
      await call
      return true
    } catch (error) {
      this.#reject(error)
      return false
    } finally {
      this.inFlight--
    }
  }

  async #run(): Promise<void> {
    while (this.#isOn) {
      const burst = this.#random() < 0.1 ? 200 : 10
      for (let i = 0; i < burst && this.inFlight < this.#maxInFlight; i++) this.#request()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  #request(): void {
    const which = this.#random()
    if (which < BATCH_SHARE) void this.#checkMany()
    else if (which < BATCH_SHARE + REFUND_SHARE && this.#refundable.length > 0) void this.#refund()
    else void this.#check()
  }

  async #check(): Promise<void> {
    const key = this.#key()
    const cost = this.#cost()
    const entry = this.#account(key).add('check', cost)
    await this.#settle(this.#limiter.check(key, cost), [entry], (decision) => {
      this.#record(entry, decision.allowed, decision.remaining)
      if (decision.allowed && cost > 0 && isRefunded(key)) this.#refundable.push({ key, decision, cost })
    })
  }

  async #checkMany(): Promise<void> {
    const length = 1 + Math.floor(this.#random() ** 2 * MOST_BATCH_KEYS)
    const keys = Array.from({ length }, () => this.#key())
    const costs = keys.map(() => this.#cost())
    const remaining = this.#random() < 0.7
    const entries = keys.map((key, i) => this.#account(key).add('check', costs[i]!))
    await this.#settle(this.#limiter.checkMany(keys, costs, { remaining }), entries, (batch) => {
      entries.forEach((entry, i) => {
        this.#record(entry, batch.allowed[i] === 1, batch.remaining?.[i])
      })
    })
  }

  async #refund(): Promise<void> {
    const at = Math.floor(this.#random() * this.#refundable.length)
    const { key, decision, cost } = this.#refundable.splice(at, 1)[0]!
    const entry = this.#account(key).add('refund', cost)
    await this.#settle(this.#limiter.refund(decision), [entry], (units) => (entry.refunded = units))
  }

  async #settle<T>(call: Promise<T>, entries: Entry[], record: (result: T) => void): Promise<void> {
    this.inFlight++
    try {
      record(await call)
    } catch (error) {
      for (const entry of entries) entry.isLost = true
      this.#reject(error)
    } finally {
      this.inFlight--
    }
  }

  #reject(error: unknown): void {
    const isLoss = error instanceof MillraceError && error.code === 'ERR_MILLRACE_WORKER_LOST'
    if (isLoss && error.mayBeCharged === true) this.lost++
    else this.complaints.push(`rejected with ${error}`)
  }

  #record(entry: Entry, isAllowed: boolean, remaining: number | undefined): void {
    entry.isAllowed = isAllowed
    // With two rules, a key that has used nothing of the first one has the figures of the second.
    entry.remaining = remaining === undefined ? undefined : Math.min(remaining, LIMIT)
    this.decided++
    for (const resolve of this.#onDecision.splice(0)) resolve(performance.now())
  }

  #account(key: string): Account {
    const known = this.accounts.get(key)
    if (known !== undefined) return known
    const account = new Account()
    this.accounts.set(key, account)
    return account
  }

  #key(): string {
    const which = this.#random()
    if (which < 0.4) return `hot ${Math.floor(this.#random() * HOT_KEYS)}`
    if (which < 0.9 || this.#newKeys === MOST_NEW_KEYS)
      return `mixed ${Math.floor(this.#random() * MIXED_KEYS)}`
    return `new ${this.#newKeys++}`
  }

  #cost(): number {
    return Math.floor(this.#random() * 4)
  }
}

const isRefunded = (key: string): boolean => Number(key.slice(key.indexOf(' '))) % 2 === 1
