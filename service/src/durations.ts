/** The requests of one method, route and status. */
interface Series {
  readonly labels: string
  /** By the least bound that is not below the duration; the last one: above all bounds. */
  readonly counts: number[]
  sum: number
}

/** A histogram of durations, by method, route and status. That of prom-client takes as long as a decision does. */
export class Durations {
  readonly #name: string
  readonly #help: string
  readonly #bounds: readonly number[]
  readonly #series = new Map<string, Series>()

  /** @param bounds in seconds, ascending */
  constructor(name: string, help: string, bounds: readonly number[]) {
    this.#name = name
    this.#help = help
    this.#bounds = bounds
  }

  add(method: string, route: string, status: number, seconds: number): void {
    const key = `${status} ${method} ${route}`
    let series = this.#series.get(key)
    if (series === undefined) {
      const labels = `method="${method}",route="${route}",status="${status}"`
      series = { labels, counts: Array(this.#bounds.length + 1).fill(0), sum: 0 }
      this.#series.set(key, series)
    }
    let i = 0
    while (seconds > this.#bounds[i]!) i++
    series.counts[i]!++
    series.sum += seconds
  }

  /** In the text format of Prometheus. */
  toString(): string {
    const [name, bounds] = [this.#name, [...this.#bounds, '+Inf']]
    const lines = [`# HELP ${name} ${this.#help}`, `# TYPE ${name} histogram`]
    for (const { labels, counts, sum } of this.#series.values()) {
      let count = 0
      for (const [i, bound] of bounds.entries()) {
        count += counts[i]!
        lines.push(`${name}_bucket{le="${bound}",${labels}} ${count}`)
      }
      lines.push(`${name}_sum{${labels}} ${sum}`, `${name}_count{${labels}} ${count}`)
    }
    return `${lines.join('\n')}\n`
  }
}
