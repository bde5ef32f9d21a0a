import Table from 'cli-table3'
import { grouped, printable, shortened } from '../terminal.js'
import type { RefusedClient } from './judge.js'
import { readable } from './keys.js'

const ALL_COLUMNS = ['requests', 'refused', 'most in one window'] as const
const FEWEST_COLUMNS = ['refused'] as const
const FIGURES = { requests: 'requests', refused: 'refused', 'most in one window': 'peak' } as const
const MIN_NAME_WIDTH = 15 // columns: an IPv4 address

/**
 * A table of refused clients. It has all columns if the client's name still fits, else only the refusals.
 * `who` is the title of the first column: `client` or `key`.
 */
export function clientTable(clients: readonly RefusedClient[], who: string, width: number): string {
  const rows = (titles: readonly (keyof typeof FIGURES)[]) =>
    clients.map((client) => titles.map((title) => grouped(client[FIGURES[title]])))
  const room = (titles: readonly (keyof typeof FIGURES)[]) => {
    const figures = rows(titles)
    const widths = titles.map((title, i) =>
      figures.reduce((most, row) => Math.max(most, row[i]!.length), title.length),
    )
    return width - widths.reduce((sum, column) => sum + column + 3, 4)
  }
  const titles = room(ALL_COLUMNS) >= MIN_NAME_WIDTH ? ALL_COLUMNS : FEWEST_COLUMNS
  const widest = Math.max(who.length, room(titles))
  const table = new Table({
    head: [who, ...titles],
    colAligns: ['left', ...titles.map(() => 'right' as const)],
    style: { head: [], border: [], compact: true },
  })
  const figures = rows(titles)
  for (const [i, { client }] of clients.entries())
    table.push([shortened(printable(readable(client)), widest), ...figures[i]!])
  return table.toString()
}
