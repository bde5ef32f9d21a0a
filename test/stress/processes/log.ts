import { closeSync, openSync } from 'node:fs'
import { neededAddon } from '#millrace/native/addon.js'
import { WindowJudge } from '../../judge/window-judge.js'
import { KEYS, PROCESSES, WIDTH } from './job.js'

/** Words per cache line. Words of different processes are on different lines. */
const LINE = 16

/**
 * The judge's file, which all processes map in addition to the limiter's: the units of each key that took
 * effect in each tick of the run. It has room for all ticks, so an entry may come after any pause.
 *
 * A process that is killed between a decision and its entry hides one admission. Admissions are entered after
 * the decision and removed before a refund, so all entries are of admissions that hold.
 */
export class Log {
  readonly #words: Int32Array
  readonly #ticks: number

  static wordsFor(ticks: number): number {
    return LINE * (1 + PROCESSES) + ticks * KEYS
  }

  static make(path: string, ticks: number): Log {
    const fd = openSync(path, 'wx+', 0o600)
    neededAddon('log', path).files!.allocate(fd, 4 * Log.wordsFor(ticks))
    closeSync(fd)
    return new Log(path, ticks)
  }

  constructor(path: string, ticks: number) {
    const fd = openSync(path, 'r+')
    this.#words = new Int32Array(neededAddon('log', path).files!.map(fd, 4 * Log.wordsFor(ticks)).buffer)
    this.#ticks = ticks
    closeSync(fd)
  }

  /** Tells the processes to exit. */
  stop(): void {
    Atomics.store(this.#words, 0, 1)
  }

  get isStopped(): boolean {
    return Atomics.load(this.#words, 0) === 1
  }

  /** Adds to the number of decisions of a slot. */
  make(slot: number, decisions: number): void {
    Atomics.add(this.#words, LINE * (1 + slot), decisions)
  }

  /** The number of decisions of all processes that a slot has had. */
  made(slot: number): number {
    return Atomics.load(this.#words, LINE * (1 + slot))
  }

  enter(key: number, tick: number, units: number): void {
    if (tick < 0 || tick >= this.#ticks)
      throw new Error(`tick ${tick} is outside the run's ${this.#ticks} ticks`)
    Atomics.add(this.#words, this.#at(key, tick), units)
  }

  /** Judges every window of every key. */
  judge(limit: number): WindowJudge {
    const judge = new WindowJudge(limit, WIDTH, KEYS)
    for (let key = 0; key < KEYS; key++) {
      for (let tick = 0; tick < this.#ticks; tick++)
        judge.add(key, tick, Atomics.load(this.#words, this.#at(key, tick)))
    }
    return judge
  }

  #at(key: number, tick: number): number {
    return LINE * (1 + PROCESSES) + tick * KEYS + key
  }
}
