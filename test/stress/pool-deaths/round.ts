import { type AsyncLimiter, attachLimiter, createLimiter, manualClock } from 'millrace'
import { Killer } from './killer.js'
import { LIMIT, Load, type Random, randomFrom } from './load.js'
import { AT_START, INSIDE, type Inside } from './order.js'

/** From outside at a random moment of the load, at rest, or while it starts; or from inside. */
export const MANNERS = ['terminate', 'at rest', 'starting', 'starting inside', ...INSIDE] as const
export type Manner = (typeof MANNERS)[number]

export interface Plan {
  readonly manners: readonly Manner[]
  readonly minThreads: number
  readonly maxThreads: number
  /** By a clock that stands and is turned, instead of the machine's. */
  readonly isManual: boolean
  readonly mostUnderWay: number
  readonly seed: number
}

export interface Findings {
  readonly deaths: Record<Manner, number>
  /** Decisions answered, and calls that ended with a thread. */
  decided: number
  lost: number
  keys: number
  /** From the end of a thread to the next decision, of each death in a pool of one. */
  readonly firstMs: number[]
  /** From the end of a thread until every ring has answered, behind all that had been asked before; of each death. */
  readonly wholeMs: number[]
  /** Promises that never settled, or a pool that never was whole again. */
  hangs: number
  readonly complaints: string[]
}

/** The window is longer than any round, also where its clock is turned. */
const WINDOW = '30d'
const MOST_TURNS = 60
const MOST_STEPS = 400
/** Enough for all keys of `load.ts` without anybody's place being taken. */
const MAX_KEYS = 400_000
/** What a thread has: little enough to use it up in a moment. */
const MEMORY = { maxOldGenerationSizeMb: 48, maxYoungGenerationSizeMb: 4 }
/** Decisions that a thread may have counted for the statistics and not yet told. */
const UNKNOWN_STAMP = 256
const MAX_WAIT_MS = 60_000

/** Threads of one pool die one after another while it is asked all the time. */
export class Round {
  readonly found: Findings = {
    deaths: Object.fromEntries(MANNERS.map((manner) => [manner, 0])) as Record<Manner, number>,
    decided: 0,
    lost: 0,
    keys: 0,
    firstMs: [],
    wholeMs: [],
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
    const { minThreads, maxThreads, isManual, mostUnderWay, seed } = plan
    this.#plan = plan
    this.#random = randomFrom(seed)
    this.#limiter = createLimiter({
      limit: LIMIT,
      window: WINDOW,
      maxKeys: MAX_KEYS,
      engine: 'pool',
      pool: { minThreads, maxThreads, resourceLimits: MEMORY },
      ...(isManual && { clock: this.#clock }),
    })
    this.#load = new Load(this.#limiter, mostUnderWay, randomFrom(seed + 1))
  }

  /** `onDeath` is called after each. */
  async run(onDeath: () => void): Promise<Findings> {
    const { found } = this
    for (const manner of this.#plan.manners) {
      await this.#turns()
      if (this.#plan.isManual) this.#clock.advance(this.#random() * 1_000)
      if (await this.#isHung(this.#kill(manner), `${manner}: no death`)) return found
      const startedMs = performance.now()
      const first = this.#load.nextAnswer()
      if (await this.#isHung(this.#whole(), `${manner}: not whole again`)) return found
      found.wholeMs.push(performance.now() - startedMs)
      if (this.#plan.maxThreads === 1) found.firstMs.push((await first) - startedMs)
      found.deaths[manner]++
      onDeath()
    }
    if (await this.#isHung(this.#load.pause(), 'the load does not pause')) return found
    if (
      await this.#isHung(
        reach(() => this.#load.underWay === 0),
        'promises that never settle',
      )
    )
      return found
    await this.#judge()
    if (await this.#isHung(this.#limiter.close(), 'close() never ends')) return found
    if (this.#killer.living.length > 0) found.complaints.push('threads outlive their pool')
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
        await reach(() => this.#load.underWay === 0)
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
        // One that was to spare ends without another being started: by the time that every ring answers, that is clear.
        for (let before = killer.deaths; !isStarted; before = killer.deaths) {
          await this.#terminateOne()
          await reach(() => killer.deaths > before)
          await Promise.race([killed, this.#whole()])
        }
        return killed
      }
      case 'starting inside':
        killer.order(INSIDE[Math.floor(this.#random() * INSIDE.length)]!, 0, AT_START)
        await this.#terminateOne()
        return reach(() => killer.deaths > deaths + 1)
      case 'throw': // its thread lives on
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

  /** Every ring answers: statistics are asked of all. */
  async #whole(): Promise<void> {
    while (!(await this.#load.outcomeOf(this.#limiter.stats())));
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
    if (evicted > 0) found.complaints.push(`${evicted} keys evicted`) // and of those all else is as may be
    for (const [key, account] of load.accounts) {
      const wrong = account.complaints(LIMIT, inline.usage(key))
      found.complaints.push(...wrong.map((what) => `${key}: ${what}`))
    }
    const told = allowed + denied
    if (told < load.decided - deaths * UNKNOWN_STAMP)
      found.complaints.push(`${told} decisions in the statistics, of ${load.decided}`)
    found.decided += load.decided
    found.lost += load.lost
    found.keys += load.accounts.size
  }

  async #isHung(what: Promise<unknown>, complaint: string): Promise<boolean> {
    const clock = { timer: undefined as NodeJS.Timeout | undefined }
    const patience = new Promise<'hung'>((resolve) => {
      clock.timer = setTimeout(resolve, MAX_WAIT_MS, 'hung')
    })
    const isHung = (await Promise.race([what, patience])) === 'hung'
    clearTimeout(clock.timer)
    if (isHung) {
      this.found.hangs++
      const { underWay, decided } = this.#load
      this.found.complaints.push(`${complaint}: ${underWay} calls under way, ${decided} decided`)
    }
    return isHung
  }
}

async function reach(isSo: () => boolean): Promise<void> {
  while (!isSo()) await turn()
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
