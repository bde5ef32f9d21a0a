import { mostIn } from '../judge/window-judge.js'
import { Population, type Traffic } from './traffic.js'

/** One passing key in so many is judged. */
const JUDGED_ONE_IN = 1_000
/** A thread that does not run for a while charges a key after its time. */
const LATE_MS = 2_000
/** The logs of keys that left wait to be judged for their windows to pass and for the next rest. */
const MOST_WAITING_MS = 20_000
/** A hot key's log is as long as the run, which may end late. */
const SLACK_MS = 60_000
const JUDGED_HOT_KEYS = 8

export interface SharedLogs {
  readonly startMs: number
  readonly hot: SharedArrayBuffer
  readonly passing: SharedArrayBuffer
  readonly unlogged: SharedArrayBuffer
}

/** What was found in the logs of keys that have been judged. */
export interface Verdict {
  judged: number
  /** The most units in a window of any of them. */
  most: number
  over: number
}

/**
 * An exact log for each tick of some keys, of what all threads were admitted less what they gave back. All memory is
 * taken, and written to, at the start: a log that grew would look like a leak.
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
  /** The oldest judged-to-be key that has not been judged yet. */
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

  /** Adds to the log of a key: -1 to -HOT_KEYS are the hot ones, from 0 on those that pass. */
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

  /** Charges that came after their log's end: none, but for threads that did not run for seconds. */
  get unlogged(): number {
    return Atomics.load(this.#unlogged, 0)
  }

  /** Units that a hot key was admitted in the window that ends in `tick`. */
  usedByHot(key: number, tick: number): number {
    const end = tick - this.#firstTick + 1
    const log = this.#logOf(this.#hot, -key - 1, this.#hotTicks)
    return log.subarray(Math.max(0, end - this.#width), end).reduce((sum, count) => sum + count, 0)
  }

  /** Judges the passing keys that have left and count no more, while all threads rest; their logs are free again. */
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

  /** No key past this one may come in yet: its log is still another's. */
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
