import { randomInt } from 'node:crypto'
import { createLimiter } from 'millrace'
import { monotonicClock } from '#millrace/core/clock.js'
import { attachArena } from '#millrace/memory/arena.js'
import { Ledger } from './ledger.js'
import type { Counts } from './load.js'
import { judgedHotKeys, Logs, type Verdict } from './logs.js'
import { Partner } from './partner.js'
import { Pauses } from './pauses.js'
import { type Report, type SharedSoak, Side } from './side.js'
import { maxKeysOf, nameOf, type Traffic, trafficsOf } from './traffic.js'

export interface SoakOptions {
  readonly minutes: number
  /** Keys in use at any time, per limiter. */
  readonly keys: number
  /** The factor by which keys change faster than usual. */
  readonly pace: number
  readonly seed: number
  readonly onRest?: (result: SoakResult) => void
}

/** The results of one limiter. */
export interface LimiterResult {
  readonly traffic: Traffic
  /** One per thread. */
  readonly counts: readonly Counts[]
  readonly evicted: number
  readonly keys: number
  readonly hot: Verdict
  readonly passing: Verdict
  readonly unlogged: number
}

export interface Sample {
  readonly atMs: number
  readonly rssBytes: number
  readonly heapBytes: readonly number[]
}

export interface SoakResult {
  readonly minutes: number
  readonly seed: number
  readonly rests: number
  readonly limiters: readonly LimiterResult[]
  readonly samples: readonly Sample[]
  readonly pauses: Pauses
  /** All mismatches and violations; empty if the run held. */
  readonly wrong: readonly string[]
}

export const anySeed = (): number => randomInt(2 ** 31)

const LEAST_REST_MS = 1_000
const MOST_REST_MS = 10_000
const RESTS_AT_LEAST = 60

/** A limiter and its checks. */
interface Subject {
  readonly traffic: Traffic
  readonly logs: Logs
  readonly ledger: Ledger
  readonly passing: Verdict
}

/** Loads two limiters from two threads, and checks all counts at every rest. */
export class Soak {
  readonly #options: SoakOptions
  readonly #shared: SharedSoak
  readonly #side: Side
  readonly #subjects: readonly Subject[]
  readonly #pauses = new Pauses()
  readonly #samples: Sample[] = []
  readonly #wrong: string[] = []
  readonly #startMs: number
  #rests = 0
  #last: readonly Report[] = []

  constructor(options: SoakOptions) {
    const { minutes, keys, pace, seed } = options
    this.#options = options
    const traffics = trafficsOf(keys, pace)
    this.#startMs = monotonicClock.now()
    const limiters = traffics.map((traffic) => {
      const { limit, windowMs, granularityMs } = traffic
      const maxKeys = maxKeysOf(traffic)
      return createLimiter({ limit, window: windowMs, granularity: granularityMs, maxKeys }).share()
    })
    const logs = traffics.map((traffic) => Logs.allocate(traffic, this.#startMs, minutes * 60_000))
    this.#shared = { traffics, limiters, logs, seed: 2 * seed }
    this.#side = new Side(this.#shared)
    this.#subjects = traffics.map((traffic, i) => ({
      traffic,
      logs: new Logs(traffic, logs[i]!),
      ledger: new Ledger(attachArena(limiters[i]!.buffer)),
      passing: { judged: 0, most: 0, over: 0 },
    }))
  }

  async run(): Promise<SoakResult> {
    const { minutes, onRest } = this.#options
    const partner = await Partner.start({ ...this.#shared, seed: this.#shared.seed + 1 })
    const endMs = this.#startMs + minutes * 60_000
    const restMs = Math.min(MOST_REST_MS, Math.max(LEAST_REST_MS, (minutes * 60_000) / RESTS_AT_LEAST))
    for (;;) {
      const ends = this.#subjects.map(({ logs }) => logs.end)
      const restAt = Math.min(endMs, monotonicClock.now() + restMs)
      partner.go(ends)
      await this.#loadUntil(restAt, ends)
      if (monotonicClock.now() >= endMs) break
      this.#check([this.#side.rest(), await partner.rest()])
      onRest?.(this.#result())
    }
    this.#pauses.close()
    const last = await partner.end()
    this.#check([this.#side.rest(), last])
    const result = this.#result()
    await this.#side.close()
    return result
  }

  /** Makes slices of decisions with a turn of the event loop after each, as in a server. */
  async #loadUntil(restAt: number, ends: readonly number[]): Promise<void> {
    this.#pauses.watch()
    for (let now = monotonicClock.now(); now < restAt; ) {
      this.#side.slice(ends)
      const sliced = monotonicClock.now()
      await new Promise<void>((resolve) => setImmediate(resolve))
      const turned = monotonicClock.now()
      this.#pauses.turned(sliced - now, turned - now)
      now = turned
    }
    this.#pauses.rest()
  }

  /** Checks all counts while both threads rest. */
  #check(reports: readonly Report[]): void {
    this.#rests++
    this.#last = reports
    const rssBytes = process.memoryUsage.rss()
    const atMs = monotonicClock.now() - this.#startMs
    this.#samples.push({ atMs, rssBytes, heapBytes: reports.map(({ heapBytes }) => heapBytes) })
    this.#subjects.forEach(({ traffic, logs, ledger, passing }, i) => {
      const threads = reports.map(({ counts }) => counts[i]!)
      const limiter = this.#side.limiters[i]!
      const wrong = ledger.differences(threads, () => limiter.stats())
      for (const key of judgedHotKeys()) {
        const before = logs.usedByHot(key, this.#tickOf(traffic))
        const usage = limiter.usage(nameOf(key))
        const after = logs.usedByHot(key, this.#tickOf(traffic))
        if (usage < after || usage > before) wrong.push(`${nameOf(key)}: ${usage} used, ${before} in its log`)
      }
      logs.judgePassing(monotonicClock.now() - this.#startMs, passing)
      this.#wrong.push(...wrong.map((text) => `rest ${this.#rests}, ${traffic.name}: ${text}`))
    })
  }

  #tickOf({ granularityMs }: Traffic): number {
    return Math.floor(monotonicClock.now() / granularityMs)
  }

  #result(): SoakResult {
    const { minutes, seed } = this.#options
    const limiters = this.#subjects.map(({ traffic, logs, passing }, i) => {
      const hot = { judged: 0, most: 0, over: 0 }
      logs.judgeHot(hot)
      const counts = this.#last.map(({ counts }) => counts[i]!)
      const { evicted, keys } = this.#side.limiters[i]!.stats()
      return { traffic, counts, evicted, keys, hot, passing, unlogged: logs.unlogged }
    })
    const over = limiters
      .filter(({ hot, passing }) => hot.over + passing.over > 0)
      .map(({ traffic, hot, passing }) => {
        const most = Math.max(hot.most, passing.most)
        return `${traffic.name}: ${hot.over + passing.over} keys over the limit of ${traffic.limit}, at most ${most}`
      })
    return {
      minutes,
      seed,
      rests: this.#rests,
      limiters,
      samples: this.#samples,
      pauses: this.#pauses,
      wrong: [...this.#wrong, ...over],
    }
  }
}
