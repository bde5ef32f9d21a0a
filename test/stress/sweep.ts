import { WindowJudge } from '../judge/window-judge.js'
import { DONE, type Log } from './log.js'

/** Judges every window of the log, following the threads that write it. */
export class Sweep extends WindowJudge {
  readonly #log: Log
  readonly #width: number
  #next = 0
  #last = 0

  constructor(log: Log, limit: number, width: number) {
    super(limit, width, log.memory.columns)
    this.#log = log
    this.#width = width
  }

  /** The number of judged ticks. */
  get ticks(): number {
    return this.#next
  }

  /** Judges all complete windows. Once all threads are done, windows up to `nowTick` are complete. */
  advance(nowTick: number): void {
    this.#last = Math.max(this.#last, nowTick)
    const { horizon } = this.#log
    const end = horizon === DONE ? this.#last + 1 : horizon
    if (end <= this.#next) return
    for (; this.#next < end; this.#next++) this.#judge(this.#next)
    this.#log.swept = end
  }

  /** Keeps the rows of one window, because threads judge refusals by them. */
  #judge(tick: number): void {
    const { columns } = this.#log.memory
    for (let column = 0; column < columns; column++) this.add(column, tick, this.#log.read(column, tick))
    if (tick >= this.#width) this.#log.clearRow(tick - this.#width)
  }
}
