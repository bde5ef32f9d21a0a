import { WindowJudge } from '../judge/window-judge.js'
import { DONE, type Log } from './log.js'

/** Judges every window of the log, behind the threads that log. */
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

  /** Ticks judged. */
  get ticks(): number {
    return this.#next
  }

  /** Judges all windows that are complete. `nowTick` bounds it, where no thread logs any more. */
  advance(nowTick: number): void {
    this.#last = Math.max(this.#last, nowTick)
    const { horizon } = this.#log
    const end = horizon === DONE ? this.#last + 1 : horizon
    if (end <= this.#next) return
    for (; this.#next < end; this.#next++) this.#judge(this.#next)
    this.#log.swept = end
  }

  /** Threads judge refusals by the rows of a whole window: they stay for as long. */
  #judge(tick: number): void {
    const { columns } = this.#log.memory
    for (let column = 0; column < columns; column++) this.add(column, tick, this.#log.read(column, tick))
    if (tick >= this.#width) this.#log.clearRow(tick - this.#width)
  }
}
