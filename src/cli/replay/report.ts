import Table from 'cli-table3'
import { formatDuration } from '../../core/duration.js'
import { grouped, shortened } from '../terminal.js'
import type { Replay } from './replay.js'

export interface Unparsed {
  count: number
  /** The first few, each with its line number. */
  examples: { line: number; text: string }[]
}

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
  if (firstMs !== null && lastMs !== null) rows.push(['from', moment(firstMs)], ['to', moment(lastMs)])
  rows.push(['clients', grouped(clients)])
  if (unparsed.count > 0) rows.push(['lines not understood', grouped(unparsed.count)])
  rows.push(
    ['requests refused', part(refused, requests)],
    ['clients refused', part(replay.refusedClients, clients)],
  )
  const label = Math.max(...rows.map(([name]) => name.length)) + 2
  for (const [name, value] of rows) lines.push(shortened(`${name.padEnd(label)}${value}`, width))
  for (const { line: number, text } of unparsed.examples)
    lines.push(shortened(`  line ${number}: ${text}`, width))

  line()
  line('How exact, judged by a log of what this limiter had admitted:')
  line(`  wrongly admitted  ${verdict(replay.wronglyAdmitted, edge)}`)
  line(`  wrongly refused   ${grouped(replay.wronglyRefused)}${early(replay)}`)
  line(`An exact sliding log on its own would have refused ${part(replay.exactRefused, requests)}.`)

  if (replay.refusedMost.length > 0) {
    line()
    line(top < replay.refusedMost.length ? `The ${top} clients refused most:` : 'The clients refused:')
    lines.push(clientTable(replay.refusedMost.slice(0, top), width))
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

function clientTable(clients: Replay['refusedMost'], width: number): string {
  const narrow = width < 60
  const head = narrow ? ['client', 'refused'] : ['client', 'requests', 'refused', 'most in one window']
  const cells = clients.map(({ client, requests, refused, peak }) =>
    narrow ? [client, grouped(refused)] : [client, grouped(requests), grouped(refused), grouped(peak)],
  )
  const others = head
    .slice(1)
    .map((title, i) => Math.max(title.length, ...cells.map((row) => row[i + 1]!.length)))
  const longest = Math.max(6, ...clients.map(({ client }) => client.length))
  const left = width - others.reduce((sum, column) => sum + column + 3, 4)
  const table = new Table({
    head,
    colAligns: head.map((_, i) => (i === 0 ? 'left' : 'right')),
    style: { head: [], border: [] },
  })
  const widest = Math.max(6, Math.min(longest, left))
  for (const [client, ...rest] of cells) table.push([shortened(client!, widest), ...rest])
  return table.toString()
}

function part(count: number, all: number): string {
  return all === 0 ? '0' : `${grouped(count)} (${((100 * count) / all).toFixed(1)} %)`
}

function moment(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

function wrapped(text: string, width: number): string[] {
  const indent = /^ */.exec(text)![0]
  const lines: string[] = []
  let rest = text
  while (rest.length > width) {
    const cut = rest.lastIndexOf(' ', width)
    if (cut <= indent.length) break
    lines.push(rest.slice(0, cut))
    rest = `${indent}  ${rest.slice(cut + 1)}`
  }
  return [...lines, rest]
}
