import Table from 'cli-table3'
import { grouped, printable, shortened } from '../terminal.js'
import type { RefusedClient } from './judge.js'
import { readable } from './keys.js'

const ALL = ['requests', 'refused', 'most in one window'] as const
const FEWEST = ['refused'] as const
const FIGURES = { requests: 'requests', refused: 'refused', 'most in one window': 'peak' } as const
const SOME_ROOM = 15 // characters: an IPv4 address

/**
 * Every column where a client's name still has some room beside them, else only who was refused how often. `who` is what
 * a client is called.
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
  const titles = room(ALL) >= SOME_ROOM ? ALL : FEWEST
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
