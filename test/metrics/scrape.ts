import type { Registry } from 'prom-client'

/** The series of a scrape, by their names with labels in the order of the alphabet. */
export type Series = ReadonlyMap<string, number>

/** Scrapes a registry, and reads what Prometheus would: each series once. */
export async function scrape(registry: Pick<Registry, 'metrics'>): Promise<Series> {
  return readSeries(await registry.metrics())
}

/** @throws Error for a line that is none of the text format, and for a series that is there twice */
export function readSeries(text: string): Series {
  const series = new Map<string, number>()
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('# ')) continue
    const [, name, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (name === undefined) throw new Error(`no line of the format: ${JSON.stringify(line)}`)
    const parts = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)/g)].map(
      ([, key, text]) => `${key}=${text}`,
    )
    const key = `${name}{${parts.sort().join()}}`
    if (series.has(key)) throw new Error(`twice: ${key}`)
    series.set(key, Number(value))
  }
  return series
}

/** The series of one metric, by their labels alone. */
export function of(series: Series, name: string): Record<string, number> {
  const own = [...series].filter(([key]) => key.startsWith(`${name}{`))
  return Object.fromEntries(own.map(([key, value]) => [key.slice(name.length + 1, -1), value]))
}

export const sum = (values: Record<string, number>): number =>
  Object.values(values).reduce((total, value) => total + value, 0)
