import Table from 'cli-table3'
import { grouped, shortened } from '../terminal.js'

/** A column of figures, one for each row. */
export interface Column {
  readonly title: string
  readonly values: readonly number[]
}

/**
 * A table of at most `width` columns of text. The first column has the names under the title `who`. The
 * figures are the first of `sets` that leaves the names `leastNameWidth`, or the last one. Longer names are
 * cut.
 */
export function figureTable(
  who: string,
  names: readonly string[],
  sets: readonly (readonly Column[])[],
  { leastNameWidth, width }: { leastNameWidth: number; width: number },
): string {
  const columns = sets.find((set) => roomBeside(set, width) >= leastNameWidth) ?? sets.at(-1)!
  const widest = Math.max(who.length, roomBeside(columns, width))
  const table = new Table({
    head: [who, ...columns.map(({ title }) => title)],
    colAligns: ['left', ...columns.map(() => 'right' as const)],
    style: { head: [], border: [], compact: true },
  })
  for (const [i, name] of names.entries())
    table.push([shortened(name, widest), ...columns.map(({ values }) => grouped(values[i]!))])
  return table.toString()
}

/** The width that columns of figures leave for the names. */
function roomBeside(columns: readonly Column[], width: number): number {
  const widths = columns.map(({ title, values }) =>
    values.reduce((most, value) => Math.max(most, grouped(value).length), title.length),
  )
  return width - widths.reduce((sum, column) => sum + column + 3, 4)
}
