import { ExactLog } from './exact-log.js'

const MOST_COMPLAINTS = 5

/** Judges every window of `width` ticks, of several keys or places: its columns. */
export class WindowJudge {
  /** Windows that end with a charge, of all columns: each was judged. */
  windows = 0
  /** Those over the limit. */
  over = 0
  /** What the first few of them were. */
  readonly complaints: string[] = []
  /** The most units in a window. */
  fullest = 0
  /** All units: must be all that was logged. */
  units = 0
  readonly #limit: number
  readonly #width: number
  readonly #logs: readonly ExactLog[]

  constructor(limit: number, width: number, columns = 1) {
    this.#limit = limit
    this.#width = width
    this.#logs = Array.from({ length: columns }, () => new ExactLog())
  }

  /** Units charged to a column in a tick. Of one column they enter in the order of ticks. */
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
    const entries = log.tell(tick, this.#width)
    this.complaints.push(`column ${column}: ${used} of ${this.#limit} in ${this.#width} ticks, ${entries}`)
  }
}

/** The most units in any `width` ticks on end. */
export function mostIn(units: Int32Array, width: number): number {
  const judge = new WindowJudge(Number.POSITIVE_INFINITY, width)
  for (const [tick, some] of units.entries()) judge.add(0, tick, some)
  return judge.fullest
}
