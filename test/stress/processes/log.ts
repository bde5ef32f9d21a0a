import { closeSync, openSync } from 'node:fs'
import { neededAddon } from '#millrace/native/addon.js'
import { WindowJudge } from '../../judge/window-judge.js'
import { KEYS, PROCESSES, WIDTH } from './job.js'

/** A cache line in words: what processes write apart stands apart. */
const LINE = 16

/**
 * The judge's own file, which all processes map beside the limiter's: how many units of each key took effect in each tick of
 * the run. Long enough for all of it, so an entry may come however late, after any pause.
 *
 * A process that is killed between a decision and its entry leaves an admission that is not judged: one a death. It enters an
 * admission after it was made, and takes it out before it gives it back: so what stands here was admitted, and is held, always.
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

  /** Processes are to end. */
  stop(): void {
    Atomics.store(this.#words, 0, 1)
  }

  get isStopped(): boolean {
    return Atomics.load(this.#words, 0) === 1
  }

  /** A process has made decisions more. */
  make(slot: number, decisions: number): void {
    Atomics.add(this.#words, LINE * (1 + slot), decisions)
  }

  /** How many were made in a slot, by all the processes that it had. */
  made(slot: number): number {
    return Atomics.load(this.#words, LINE * (1 + slot))
  }

  enter(key: number, tick: number, units: number): void {
    if (tick < 0 || tick >= this.#ticks)
      throw new Error(`tick ${tick} is not one of the run’s ${this.#ticks}`)
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
