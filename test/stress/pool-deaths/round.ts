import { type AsyncLimiter, attachLimiter, createLimiter, manualClock } from 'millrace'
import { random } from '../../algorithms/random.js'
import { Killer } from './killer.js'
import { LIMIT, Load, type Random } from './load.js'
import { AT_START, INSIDE, type Inside } from './order.js'

/**
 * Manners of death: `terminate()` under load, at rest or while the thread starts; or a cause inside the
 * thread.
 */
export const MANNERS = ['terminate', 'at rest', 'starting', 'starting inside', ...INSIDE] as const
export type Manner = (typeof MANNERS)[number]

export interface Plan {
  readonly manners: readonly Manner[]
  readonly minThreads: number
  readonly maxThreads: number
  /** Whether to use a manual clock instead of the machine's. */
  readonly isManual: boolean
  /** How many rules decide: 1 or 2. */
  readonly rules: number
  readonly maxInFlight: number
  readonly seed: number
}

export interface Findings {
  readonly deaths: Record<Manner, number>
  /** Decisions received, and calls lost with their thread. */
  decided: number
  lost: number
  keys: number
  /** Milliseconds from each death in a pool of one thread to the next decision. */
  readonly firstMs: number[]
  /** Milliseconds from each death until every ring has replied to all earlier requests. */
  readonly allRingsMs: number[]
  /** Promises that did not settle, and pools that did not recover. */
  hangs: number
  readonly complaints: string[]
}

/** Longer than any round, with the manual clock too. */
const WINDOW = '30d'
/** The second rule refuses nothing, but it charges what the first one admits. */
const RULES = [
  { name: 'first', limit: LIMIT, window: WINDOW },
  { name: 'second', limit: 10_000 * LIMIT, window: WINDOW },
]
const MOST_TURNS = 60
const MOST_STEPS = 400
/** Enough for all keys of `load.ts` without evictions. */
const MAX_KEYS = 400_000
/** A thread's memory limits, small so that it runs out of memory quickly. */
const MEMORY = { maxOldGenerationSizeMb: 48, maxYoungGenerationSizeMb: 4 }
/** The most decisions that a thread has counted but not yet added to the statistics. */
const UNREPORTED_DECISIONS = 256
const MAX_WAIT_MS = 60_000

/** Threads of one pool die one after the other under constant load. */
export class Round {
  readonly found: Findings = {
    deaths: Object.fromEntries(MANNERS.map((manner) => [manner, 0])) as Record<Manner, number>,
    decided: 0,
    lost: 0,
    keys: 0,
    firstMs: [],
    allRingsMs: [],
    hangs: 0,
    complaints: [],
  }
  readonly #plan: Plan
  readonly #random: Random
  readonly #killer = new Killer()
  readonly #clock = manualClock(1_000)
  readonly #limiter: AsyncLimiter
  readonly #load: Load
  #throws = 0

  constructor(plan: Plan) {
    const { minThreads, maxThreads, isManual, rules, maxInFlight, seed } = plan
    this.#plan = plan
    this.#random = random(seed)
    this.#limiter = createLimiter({
      rules: RULES.slice(0, rules),
      maxKeys: MAX_KEYS,
      engine: 'pool',
      pool: { minThreads, maxThreads, resourceLimits: MEMORY },
      ...(isManual && { clock: this.#clock }),
    })
    this.#load = new Load(this.#limiter, maxInFlight, random(seed + 1))
  }

  /** Calls `onDeath` after each death. */
  async run(onDeath: () => void): Promise<Findings> {
    const { found } = this
    for (const manner of this.#plan.manners) {
      await this.#turns()
      if (this.#plan.isManual) this.#clock.advance(this.#random() * 1_000)
      if (await this.#isHung(this.#kill(manner), `${manner}: the thread did not die`)) return found
      const startedMs = performance.now()
      const first = this.#load.nextDecision()
      if (await this.#isHung(this.#allRingsReply(), `${manner}: the pool did not recover`)) return found
      found.allRingsMs.push(performance.now() - startedMs)
      if (this.#plan.maxThreads === 1) found.firstMs.push((await first) - startedMs)
      found.deaths[manner]++
      onDeath()
    }
    if (await this.#isHung(this.#load.pause(), 'the load did not pause')) return found
    if (
      await this.#isHung(
        reach(() => this.#load.inFlight === 0),
        'promises did not settle',
      )
    )
      return found
    await this.#judge()
    if (await this.#isHung(this.#limiter.close(), 'close() did not resolve')) return found
    if (this.#killer.living.length > 0) found.complaints.push('threads outlived their pool')
    this.#killer.close()
    return found
  }

  async #kill(manner: Manner): Promise<void> {
    const killer = this.#killer
    const { deaths, orders } = killer
    switch (manner) {
      case 'terminate':
        await this.#terminateOne()
        return reach(() => killer.deaths > deaths)
      case 'at rest':
        await this.#load.pause()
        await reach(() => this.#load.inFlight === 0)
        await this.#turns()
        await this.#terminateOne()
        await reach(() => killer.deaths > deaths)
        return this.#load.resume()
      case 'starting': {
        let isStarted = false
        const killed = killer.nextStart().then(async (thread) => {
          isStarted = true
          await this.#turns()
          await thread.terminate()
        })
        // If a spare thread died, no other is started. That is certain once every ring has replied.
        for (let before = killer.deaths; !isStarted; before = killer.deaths) {
          await this.#terminateOne()
          await reach(() => killer.deaths > before)
          await Promise.race([killed, this.#allRingsReply()])
        }
        return killed
      }
      case 'starting inside':
        killer.order(INSIDE[Math.floor(this.#random() * INSIDE.length)]!, 0, AT_START)
        await this.#terminateOne()
        return reach(() => killer.deaths > deaths + 1)
      case 'throw': // the thread survives
        this.#order(manner)
        await reach(() => killer.orders > orders)
        this.#throws++
        return
      default:
        this.#order(manner)
        return reach(() => killer.deaths > deaths)
    }
  }

  #order(manner: Inside): void {
    this.#killer.order(manner, Math.floor(this.#random() * MOST_STEPS))
  }

  async #terminateOne(): Promise<void> {
    const { living } = this.#killer
    await reach(() => living.length > 0)
    void living[Math.floor(this.#random() * living.length)]!.terminate()
  }

  /** Waits until every ring has replied: `stats()` sends a request to each. */
  async #allRingsReply(): Promise<void> {
    while (!(await this.#load.settles(this.#limiter.stats())));
  }

  async #turns(): Promise<void> {
    for (let turns = Math.floor(this.#random() * MOST_TURNS); turns > 0; turns--) await turn()
  }

  async #judge(): Promise<void> {
    const load = this.#load
    const { found } = this
    const deaths = this.#killer.deaths + this.#throws
    found.complaints.push(...load.complaints)
    if (load.lost > deaths) found.complaints.push(`${load.lost} calls lost in ${deaths} deaths`)
    const inline = attachLimiter(this.#limiter.share())
    const { allowed, denied, evicted } = await this.#limiter.stats()
    if (evicted > 0) found.complaints.push(`${evicted} keys evicted`) // the accounts of evicted keys prove nothing
    for (const [key, account] of load.accounts) {
      const wrong = account.complaints(LIMIT, inline.usage(key))
      found.complaints.push(...wrong.map((problem) => `${key}: ${problem}`))
      if (this.#plan.rules === 1) continue
      const [least, most] = account.bounds()
      const used = inline.usage(key, undefined, { rule: 'second' })
      if (used < least || used > most)
        found.complaints.push(`${key}: ${used} charged by the second rule, expected ${least} to ${most}`)
    }
    const counted = allowed + denied
    if (counted < load.decided - deaths * UNREPORTED_DECISIONS)
      found.complaints.push(`${counted} decisions in the statistics, expected ${load.decided}`)
    found.decided += load.decided
    found.lost += load.lost
    found.keys += load.accounts.size
  }

  async #isHung(event: Promise<unknown>, complaint: string): Promise<boolean> {
    const clock = { timer: undefined as NodeJS.Timeout | undefined }
    const timeout = new Promise<'hung'>((resolve) => {
      clock.timer = setTimeout(resolve, MAX_WAIT_MS, 'hung')
    })
    const isHung = (await Promise.race([event, timeout])) === 'hung'
    clearTimeout(clock.timer)
    if (isHung) {
      this.found.hangs++
      const { inFlight, decided } = this.#load
      this.found.complaints.push(`${complaint}: ${inFlight} calls in flight, ${decided} decided`)
    }
    return isHung
  }
}

async function reach(isMet: () => boolean): Promise<void> {
  while (!isMet()) await turn()
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
