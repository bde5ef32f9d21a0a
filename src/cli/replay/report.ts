import Table from 'cli-table3'
import { formatDuration } from '../../core/duration.js'
import { grouped, printable, shortened, wrapped } from '../terminal.js'
import type { Replay } from './replay.js'

export interface Unparsed {
  count: number
  /** The first few, each with its line number. */
  examples: { line: number; text: string }[]
}

/** A table takes time with the square of its rows; the JSON has them all. */
const MOST_LISTED = 1_000

/** What a replay found, for people: at most `width` characters wide, without colour. */
export function report(replay: Replay, unparsed: Unparsed, top: number, width: number): string {
  const lines: string[] = []
  const line = (text = '') => lines.push(...wrapped(text, width))
  const { requests, clients, refused, limit, windowMs, granularityMs, edge, firstMs, lastMs } = replay

  line(
    `${grouped(limit)} in ${formatDuration(windowMs)} a client, ${edge}, granules of ${formatDuration(granularityMs)}`,
  )
  line()
  const rows: [string, string][] = [['requests', grouped(requests)]]
  if (firstMs !== null && lastMs !== null)
    rows.push(['from (UTC)', moment(firstMs)], ['to (UTC)', moment(lastMs)])
  rows.push(
    ['clients', grouped(clients)],
    ['requests refused', part(refused, requests)],
    ['clients refused', part(replay.refusedClients, clients)],
  )
  if (unparsed.count > 0) rows.push(['unparsed lines', grouped(unparsed.count)])
  const label = Math.max(...rows.map(([name]) => name.length)) + 2
  for (const [name, value] of rows) lines.push(shortened(`${name.padEnd(label)}${value}`, width))
  for (const { line: number, text } of unparsed.examples)
    lines.push(shortened(`  line ${number}: ${printable(text.slice(0, width))}`, width))

  line()
  line('How exact, judged by a log of what this limiter had admitted:')
  line(`  wrongly admitted  ${verdict(replay.wronglyAdmitted, edge)}`)
  line(`  wrongly refused   ${grouped(replay.wronglyRefused)}${early(replay)}`)
  line(`An exact sliding log on its own would have refused ${part(replay.exactRefused, requests)}.`)

  const listed = replay.refusedMost.slice(0, Math.min(top, MOST_LISTED))
  if (listed.length > 0) {
    line()
    const most = listed.length === 1 ? 'client' : `${grouped(listed.length)} clients`
    line(listed.length < replay.refusedMost.length ? `The ${most} refused most:` : 'The clients refused:')
    lines.push(clientTable(listed, width))
  }
  return `${lines.join('\n')}\n`
}

function verdict(wronglyAdmitted: number, edge: Replay['edge']): string {
  if (wronglyAdmitted === 0) return '0'
  const why = edge === 'strict' ? 'a promise is broken' : 'smooth may, by up to a granule'
  return `${grouped(wronglyAdmitted)} (${why})`
}

function early({ wronglyRefused, refusedTooEarly }: Replay): string {
  if (refusedTooEarly > 0)
    return ` (${grouped(refusedTooEarly)} more than a granule early: a promise is broken)`
  return wronglyRefused > 0 ? ' (all at most one granule early)' : ''
}

const ALL = ['client', 'requests', 'refused', 'most in one window'] as const
const FEWEST = ['client', 'refused'] as const

/** Every column where a client's name still has some room beside them, else only who was refused how often. */
function clientTable(clients: Replay['refusedMost'], width: number): string {
  const figure = { requests: 'requests', refused: 'refused', 'most in one window': 'peak' } as const
  const rows = (head: readonly string[]) =>
    clients.map((client) =>
      head.slice(1).map((title) => grouped(client[figure[title as keyof typeof figure]])),
    )
  const room = (head: readonly string[]) => {
    const figures = rows(head)
    const widths = head
      .slice(1)
      .map((title, i) => figures.reduce((most, row) => Math.max(most, row[i]!.length), title.length))
    return width - widths.reduce((sum, column) => sum + column + 3, 4)
  }
  const head = room(ALL) >= 15 ? ALL : FEWEST // 15 characters: an IPv4 address
  const widest = Math.max('client'.length, room(head))
  const table = new Table({
    head: [...head],
    colAligns: head.map((_, i) => (i === 0 ? 'left' : 'right')),
    style: { head: [], border: [], compact: true },
  })
  const figures = rows(head)
  for (const [i, { client }] of clients.entries())
    table.push([shortened(printable(client), widest), ...figures[i]!])
  return table.toString()
}

function part(count: number, all: number): string {
  return all === 0 ? '0' : `${grouped(count)} (${((100 * count) / all).toFixed(1)} %)`
}

function moment(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
}
