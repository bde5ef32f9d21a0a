import { ExactLog } from './exact-log.js'

const MOST_COMPLAINTS = 5

/** Judges every window of `width` ticks in several columns. A column holds one key or one place. */
export class WindowJudge {
  /** The number of judged windows. Each window ends with a charge. */
  windows = 0
  /** The number of windows over the limit. */
  over = 0
  /** Descriptions of the first few of those. */
  readonly complaints: string[] = []
  /** The most units in a window. */
  fullest = 0
  /** The sum of all units, to be compared with the logged sum. */
  units = 0
  readonly #limit: number
  readonly #width: number
  readonly #logs: readonly ExactLog[]

  constructor(limit: number, width: number, columns = 1) {
    this.#limit = limit
    this.#width = width
    this.#logs = Array.from({ length: columns }, () => new ExactLog())
  }

  /** Adds units that were charged to a column in a tick. The ticks of a column must ascend. */
  add(column: number, tick: number, units: number): void {
    if (units === 0) return
    const log = this.#logs[column]!
    log.add(tick, units)
    log.forget(tick - this.#width)
    const used = log.used(tick, this.#width)
    this.windows++
    this.units += units
    this.fullest = Math.max(this.fullest, used)
    if (used <= this.#limit) return
    this.over++
    if (this.complaints.length === MOST_COMPLAINTS) return
    const entries = log.describe(tick, this.#width)
    this.complaints.push(`column ${column}: ${used} of ${this.#limit} in ${this.#width} ticks, ${entries}`)
  }
}

/** The most units in any `width` consecutive ticks. */
export function mostIn(units: Int32Array, width: number): number {
  const judge = new WindowJudge(Number.POSITIVE_INFINITY, width)
  for (const [tick, some] of units.entries()) judge.add(0, tick, some)
  return judge.fullest
}
