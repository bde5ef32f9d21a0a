import { mostIn } from '../judge/window-judge.js'
import { Population, type Traffic } from './traffic.js'

/** One passing key in this many is judged. */
const JUDGED_ONE_IN = 1_000
/** Extra time of a log for threads that do not run for a while and charge a key late. */
const LATE_MS = 2_000
/** Logs of finished keys are judged at the next rest after their windows have passed. */
const MOST_WAITING_MS = 20_000
/** Extra time of a hot key's log, which covers the whole run, as the run may end late. */
const SLACK_MS = 60_000
const JUDGED_HOT_KEYS = 8

export interface SharedLogs {
  readonly startMs: number
  readonly hot: SharedArrayBuffer
  readonly passing: SharedArrayBuffer
  readonly unlogged: SharedArrayBuffer
}

/** Results from the logs of judged keys. */
export interface Verdict {
  judged: number
  /** The most units of a key in any window. */
  most: number
  over: number
}

/**
 * An exact log of some keys: per tick, the units admitted to all threads less refunds. All memory is
 * allocated and touched at the start, because a growing log would look like a leak.
 */
export class Logs {
  readonly startMs: number
  readonly #traffic: Traffic
  readonly #population: Population
  readonly #hot: Int32Array
  readonly #passing: Int32Array
  readonly #unlogged: Int32Array
  readonly #firstTick: number
  readonly #hotTicks: number
  readonly #passingTicks: number
  readonly #slots: number
  /** The oldest logged key that has not been judged yet. */
  #next = 0

  static allocate(traffic: Traffic, startMs: number, runMs: number): SharedLogs {
    const { granularityMs, lifeMs } = traffic
    const hotTicks = Math.ceil((runMs + SLACK_MS) / granularityMs)
    const passingTicks = Math.ceil((lifeMs + LATE_MS) / granularityMs)
    const slots = slotsOf(traffic)
    const [hot, passing] = [JUDGED_HOT_KEYS * hotTicks, slots * passingTicks].map((length) => {
      const counts = new Int32Array(new SharedArrayBuffer(4 * length))
      counts.fill(1).fill(0)
      return counts.buffer
    }) as [SharedArrayBuffer, SharedArrayBuffer]
    return { startMs, hot, passing, unlogged: new SharedArrayBuffer(4) }
  }

  constructor(traffic: Traffic, shared: SharedLogs) {
    const { granularityMs, lifeMs } = traffic
    this.startMs = shared.startMs
    this.#traffic = traffic
    this.#population = new Population(traffic)
    this.#hot = new Int32Array(shared.hot)
    this.#passing = new Int32Array(shared.passing)
    this.#unlogged = new Int32Array(shared.unlogged)
    this.#firstTick = Math.floor(shared.startMs / granularityMs)
    this.#hotTicks = this.#hot.length / JUDGED_HOT_KEYS
    this.#passingTicks = Math.ceil((lifeMs + LATE_MS) / granularityMs)
    this.#slots = slotsOf(traffic)
  }

  static isJudged(key: number): boolean {
    return key < 0 ? key >= -JUDGED_HOT_KEYS : key % JUDGED_ONE_IN === 0
  }

  /** Adds to the log of a key: -1 to -HOT_KEYS are hot keys, 0 and above are passing keys. */
  add(key: number, tick: number, cost: number): void {
    if (!Logs.isJudged(key)) return
    const [log, length, at] =
      key < 0
        ? [this.#hot, this.#hotTicks, (tick - this.#firstTick) | 0]
        : [this.#passing, this.#passingTicks, (tick - this.#cameTick(key)) | 0]
    const slot = key < 0 ? -key - 1 : (key / JUDGED_ONE_IN) % this.#slots
    if (at >= 0 && at < length) Atomics.add(log, slot * length + at, cost)
    else Atomics.add(this.#unlogged, 0, 1)
  }

  /** Charges after the end of their log. Only threads that stop for seconds cause them. */
  get unlogged(): number {
    return Atomics.load(this.#unlogged, 0)
  }

  /** Units admitted to a hot key in the window that ends in `tick`. */
  usedByHot(key: number, tick: number): number {
    const end = tick - this.#firstTick + 1
    const log = this.#logOf(this.#hot, -key - 1, this.#hotTicks)
    return log.subarray(Math.max(0, end - this.#width), end).reduce((sum, count) => sum + count, 0)
  }

  /**
   * Judges the finished passing keys whose windows have passed, and frees their logs. All threads must rest.
   */
  judgePassing(elapsedMs: number, verdict: Verdict): void {
    const { windowMs } = this.#traffic
    const end = this.#population.oldest(elapsedMs - 2 * windowMs - LATE_MS)
    for (; this.#next < end; this.#next += JUDGED_ONE_IN) {
      const log = this.#logOf(this.#passing, (this.#next / JUDGED_ONE_IN) % this.#slots, this.#passingTicks)
      this.#judge(log, verdict)
      log.fill(0)
    }
  }

  judgeHot(verdict: Verdict): void {
    for (let key = 0; key < JUDGED_HOT_KEYS; key++) {
      this.#judge(this.#logOf(this.#hot, key, this.#hotTicks), verdict)
    }
  }

  /** The first key that must not be used yet, because another key has its log. */
  get end(): number {
    return this.#next + this.#slots * JUDGED_ONE_IN
  }

  #judge(log: Int32Array, verdict: Verdict): void {
    const most = mostIn(log, this.#width)
    verdict.judged++
    verdict.most = Math.max(verdict.most, most)
    if (most > this.#traffic.limit) verdict.over++
  }

  #logOf(logs: Int32Array, slot: number, length: number): Int32Array {
    return logs.subarray(slot * length, (slot + 1) * length)
  }

  /** Ticks that a strict window touches. */
  get #width(): number {
    return this.#traffic.windowMs / this.#traffic.granularityMs + 1
  }

  #cameTick(id: number): number {
    return Math.floor((this.startMs + this.#population.cameMs(id)) / this.#traffic.granularityMs)
  }
}

function slotsOf({ keys, lifeMs, windowMs }: Traffic): number {
  return Math.ceil((keys / JUDGED_ONE_IN) * (1 + (2 * windowMs + LATE_MS + MOST_WAITING_MS) / lifeMs))
}

/** Every judged hot key. */
export const judgedHotKeys = (): number[] => Array.from({ length: JUDGED_HOT_KEYS }, (_, i) => -1 - i)
