import { DONE, type Log } from './log.js'

/** Judges every window of `width` ticks, behind the threads that log. */
export class Sweep {
  /** Windows that end with an admission, of all columns: each was judged. */
  windows = 0
  /** Those over the limit. */
  over = 0
  /** What the first few of them were. */
  readonly complaints: string[] = []
  /** The most units in a window. */
  fullest = 0
  /** Units in all rows judged: must be all that was logged. */
  units = 0
  readonly #log: Log
  readonly #limit: number
  readonly #width: number
  readonly #sums: Float64Array
  #next = 0
  #last = 0

  constructor(log: Log, limit: number, width: number) {
    this.#log = log
    this.#limit = limit
    this.#width = width
    this.#sums = new Float64Array(log.memory.columns)
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

  #judge(tick: number): void {
    const { columns } = this.#log.memory
    for (let column = 0; column < columns; column++) {
      const left = tick < this.#width ? 0 : this.#log.read(column, tick - this.#width)
      const units = this.#log.read(column, tick)
      const sum = this.#sums[column]! + units - left
      this.#sums[column] = sum
      if (units === 0) continue
      this.units += units
      this.windows++
      this.fullest = Math.max(this.fullest, sum)
      if (sum > this.#limit) this.#complain(column, tick, sum)
    }
    if (tick >= this.#width) this.#log.clearRow(tick - this.#width)
  }

  #complain(column: number, tick: number, sum: number): void {
    this.over++
    if (this.complaints.length >= 5) return
    const ticks: string[] = []
    for (let back = this.#width - 1; back >= 0; back--) {
      const units = back > tick ? 0 : this.#log.read(column, tick - back)
      if (units !== 0) ticks.push(`${units} at ${tick - back}`)
    }
    this.complaints.push(
      `column ${column}: ${sum} of ${this.#limit} in ${this.#width} ticks, ${ticks.join(', ')}`,
    )
  }
}
