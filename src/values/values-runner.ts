import type { CountingCall } from '../remote/counting-call.js'
import type { Runner } from '../remote/counting-store.js'
import type { OpenCall } from '../remote/guard.js'
import { Outage } from '../remote/outage.js'
import type { Count } from './count.js'
import { countsOf } from './counts-of.js'
import { contended, decide } from './decide.js'
import { KeyTurns } from './key-turns.js'
import { encodeCounts, ValueFault } from './saved-count.js'
import type { Values } from './values.js'

/** When a request that was refused for contention may try again. */
const CONTENDED_MS = 10
const KEYS_PER_CALL = 64

/** The value of a call. */
export type KeyOfCall = Pick<CountingCall, 'names' | 'rules' | 'timeMs'>

/** Where values are. */
export interface ValuesPlace {
  onRecovery: () => void
  ready(): Promise<void>
  /** Runs a call, and settles it by its deadline. @param name of its value */
  run<T>(name: string, act: (call: OpenCall) => Promise<T>): Promise<T>
  /**
   * Gives a call the values of its server.
   * @param key has a name of the value for each rule. A place that has one value for all of them takes the first
   */
  use<T>(key: KeyOfCall, call: OpenCall, act: (values: Values) => Promise<T>): Promise<T>
  /** Forgets all keys. */
  clearAll(runner: ValuesRunner): Promise<void>
  noteLoss?(): void
  close(): Promise<void>
}

/** Decides each call by a read, and by a swap if anything has changed. If the swap fails, it reads again. */
export class ValuesRunner implements Runner {
  readonly mostKeys = KEYS_PER_CALL
  readonly hasOneKey = true
  retries = 0
  contended = 0
  readonly #place: ValuesPlace
  readonly #skewMs: number
  readonly #mostTries: number
  readonly #turns = new KeyTurns()
  #latestMs = 0

  /**
   * @param skewMs by how much the clocks of processes may differ, if the place has no clock
   * @param mostTries swaps of one call that may fail. By default, the deadline bounds them
   */
  constructor(place: ValuesPlace, skewMs = 0, mostTries = Number.POSITIVE_INFINITY) {
    this.#place = place
    this.#skewMs = skewMs
    this.#mostTries = mostTries
  }

  set onRecovery(listener: () => void) {
    this.#place.onRecovery = listener
  }

  ready(): Promise<void> {
    return this.#place.ready()
  }

  run(call: CountingCall): Promise<readonly number[]> {
    const names = call.names.slice(0, call.rules.length)
    const name = names[0]!
    return this.#place.run(name, (open) =>
      this.#turns.run(name, () => {
        if (open.isSettled) return open.expired
        const decided = this.#place.use({ ...call, names }, open, (values) =>
          this.#decide(call, name, values, open),
        )
        // The next call of the key does not wait for a store that never answers.
        return Promise.race([decided, open.expired])
      }),
    )
  }

  clearAll(): Promise<void> {
    return this.#place.clearAll(this)
  }

  noteLoss(): void {
    this.#place.noteLoss?.()
  }

  close(): Promise<void> {
    return this.#place.close()
  }

  async #decide(
    call: CountingCall,
    name: string,
    values: Values,
    open: OpenCall,
  ): Promise<readonly number[]> {
    try {
      for (let tries = 1; ; tries++) {
        const [nowMs, [before]] = await Promise.all([this.#nowMs(call, values), values.read([name])])
        const counts = countsOf(call.rules, call.limits, { nowMs, skewMs: this.#skewMs }, before)
        if (tries > this.#mostTries) return this.#giveUp(call, counts)
        const reply = decide(call, counts)
        if (!counts.some(({ isChanged }) => isChanged)) return reply
        if (open.isSettled) return open.expired // nobody waits for it: it charges nothing
        open.isSent = true
        if (await values.swap(name, before, bytesOf(counts), this.#lastsMs(counts))) return reply
        open.isSent = false
        this.retries++
      }
    } catch (error) {
      if (error instanceof ValueFault) return [error.code]
      throw error
    }
  }

  /** A process whose clock is ahead must not let a value expire early for the others. */
  #lastsMs(counts: readonly Count[]): number {
    return this.#skewMs + Math.max(...counts.map(({ lastsMs }) => lastsMs))
  }

  /** Others change the key faster than this process. Requests are refused, and other calls are outages. */
  #giveUp(call: CountingCall, counts: readonly Count[]): number[] {
    this.contended++
    if (call.op === 'check' || call.op === 'try') return contended(call, counts, CONTENDED_MS)
    throw new Outage(
      new Error(`other processes have changed the key ${this.#mostTries} times meanwhile`),
      false,
    )
  }

  /** Of a test, of the place, or of this process, whose clock stands still if it steps back. */
  async #nowMs({ timeMs }: CountingCall, values: Values): Promise<number> {
    if (timeMs > 0) return timeMs
    if (values.now !== undefined) return values.now()
    this.#latestMs = Math.max(this.#latestMs, Date.now())
    return this.#latestMs
  }
}

const bytesOf = (counts: readonly Count[]): Uint8Array =>
  encodeCounts(counts.map((count) => (count.exists || count.isChanged ? count.saved : undefined)))
