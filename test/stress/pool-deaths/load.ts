import { type AsyncLimiter, type Decision, MillraceError } from 'millrace'
import { Account, type Entry } from './account.js'

/** Of every key, in a window that does not end while it is asked about. */
export const LIMIT = 400
/** Keys that are asked about all the time; those of odd number are given units back. */
const HOT_KEYS = 12
const MIXED_KEYS = 3_000
/** Fewer than a round has room for: a key whose place was taken would look like one whose charges were lost. */
const MOST_NEW_KEYS = 300_000
const MOST_BATCH_KEYS = 700
const BATCH_SHARE = 0.02
const REFUND_SHARE = 0.1

export type Random = () => number

/** Numbers from 0 to 1, the same for the same seed. */
export function randomFrom(seed: number): Random {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** An allowed decision that has not been given back. */
interface Refundable {
  readonly key: string
  readonly decision: Decision
  readonly cost: number
}

/** Asks a limiter, in every turn of the event loop, and keeps account of every key. */
export class Load {
  readonly accounts = new Map<string, Account>()
  /** Requests and batches, of which none may be forgotten. */
  underWay = 0
  /** Keys that a thread has answered about by a decision. */
  decided = 0
  /** Calls that a thread's death took along. */
  lost = 0
  readonly complaints: string[] = []
  readonly #limiter: AsyncLimiter
  readonly #mostUnderWay: number
  readonly #random: Random
  readonly #refundable: Refundable[] = []
  #onAnswer: ((atMs: number) => void)[] = []
  #newKeys = 0
  #isOn = true
  #turns: Promise<void>

  constructor(limiter: AsyncLimiter, mostUnderWay: number, random: Random) {
    this.#limiter = limiter
    this.#mostUnderWay = mostUnderWay
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

  /** When the next decision comes. */
  nextAnswer(): Promise<number> {
    return new Promise((resolve) => this.#onAnswer.push(resolve))
  }

  /** Keeps account of a call that is no decision. True: answered, false: lost. */
  async outcomeOf(call: Promise<unknown>): Promise<boolean> {
    this.underWay++
    try {
      await call
      return true
    } catch (error) {
      this.#reject(error)
      return false
    } finally {
      this.underWay--
    }
  }

  async #run(): Promise<void> {
    while (this.#isOn) {
      const burst = this.#random() < 0.1 ? 200 : 10
      for (let i = 0; i < burst && this.underWay < this.#mostUnderWay; i++) this.#ask()
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  #ask(): void {
    const which = this.#random()
    if (which < BATCH_SHARE) void this.#checkMany()
    else if (which < BATCH_SHARE + REFUND_SHARE && this.#refundable.length > 0) void this.#refund()
    else void this.#check()
  }

  async #check(): Promise<void> {
    const key = this.#key()
    const cost = this.#cost()
    const entry = this.#account(key).ask('check', cost)
    await this.#settle(this.#limiter.check(key, cost), [entry], (decision) => {
      this.#note(entry, decision.allowed, decision.remaining)
      if (decision.allowed && cost > 0 && isRefunded(key)) this.#refundable.push({ key, decision, cost })
    })
  }

  async #checkMany(): Promise<void> {
    const length = 1 + Math.floor(this.#random() ** 2 * MOST_BATCH_KEYS)
    const keys = Array.from({ length }, () => this.#key())
    const costs = keys.map(() => this.#cost())
    const remaining = this.#random() < 0.7
    const entries = keys.map((key, i) => this.#account(key).ask('check', costs[i]!))
    await this.#settle(this.#limiter.checkMany(keys, costs, { remaining }), entries, (batch) => {
      entries.forEach((entry, i) => {
        this.#note(entry, batch.allowed[i] === 1, batch.remaining?.[i])
      })
    })
  }

  async #refund(): Promise<void> {
    const at = Math.floor(this.#random() * this.#refundable.length)
    const { key, decision, cost } = this.#refundable.splice(at, 1)[0]!
    const entry = this.#account(key).ask('refund', cost)
    await this.#settle(this.#limiter.refund(decision), [entry], (units) => (entry.refunded = units))
  }

  async #settle<T>(call: Promise<T>, entries: Entry[], note: (answer: T) => void): Promise<void> {
    this.underWay++
    try {
      note(await call)
    } catch (error) {
      for (const entry of entries) entry.isLost = true
      this.#reject(error)
    } finally {
      this.underWay--
    }
  }

  #reject(error: unknown): void {
    const isLoss = error instanceof MillraceError && error.code === 'ERR_MILLRACE_WORKER_LOST'
    if (isLoss && error.mayBeCharged === true) this.lost++
    else this.complaints.push(`rejected with ${error}`)
  }

  #note(entry: Entry, isAllowed: boolean, remaining: number | undefined): void {
    entry.isAllowed = isAllowed
    entry.remaining = remaining
    this.decided++
    for (const resolve of this.#onAnswer.splice(0)) resolve(performance.now())
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
