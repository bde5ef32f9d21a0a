import { formatDuration } from 'millrace/internal'
import { lineChart } from '../chart.js'
import { grouped, printable, shortened, wrapped } from '../terminal.js'
import { clientTable } from './client-table.js'
import type { FixedWindow } from './fixed-window.js'
import type { Replay } from './replay.js'
import { labelOf, type Timeline } from './timeline.js'
import type { Unparsed } from './traffic.js'

/** What is told of a replay. */
export interface Found {
  replay: Replay
  unparsed: Unparsed
  /** The name of the key, such as `ip`. */
  key: string
  /** Requests counted by address because they had no user, which the key asks for. */
  usersMissing: number
  /** Where there is room for a chart. */
  timeline?: Timeline
  /** Where it was asked for. */
  fixedWindow?: FixedWindow
}

/** A table takes time with the square of its rows; the JSON has them all. */
const MOST_LISTED = 1_000
const CHART_LINES = 14

/** For people: at most `width` characters wide, and without colour but for a chart that asks for it. */
export function report(
  found: Found,
  { top, width, colour }: { top: number; width: number; colour: boolean },
): string {
  const { replay, key, fixedWindow } = found
  const { limit, windowMs, granularityMs, edge, refusedMost } = replay
  const lines: string[] = []
  const line = (text = '') => lines.push(...wrapped(text, width))
  const who = key === 'ip' ? 'client' : 'key'
  const whom = key === 'ip' ? 'a client' : `a key (${key})`
  const window = formatDuration(windowMs)

  line(`${grouped(limit)} in ${window} ${whom}, ${edge}, granules of ${formatDuration(granularityMs)}`)
  line()
  for (const row of table(figures(found, who))) lines.push(shortened(row, width))
  for (const { line: number, text } of found.unparsed.examples)
    lines.push(shortened(`  line ${number}: ${printable(text.slice(0, width))}`, width))

  const chart = found.timeline && overTime(found.timeline, width, colour)
  if (chart !== undefined) lines.push('', chart)

  line()
  line('How exact, judged by a log of what this limiter had admitted:')
  line(`  wrongly admitted  ${verdict(replay.wronglyAdmitted, edge)}`)
  line(`  wrongly refused   ${grouped(replay.wronglyRefused)}${early(replay)}`)
  line(`An exact sliding log on its own would have refused ${part(replay.exactRefused, replay.requests)}.`)

  if (fixedWindow) {
    line()
    line(`With a fixed window of ${window} instead:`)
    line(`  requests refused    ${part(fixedWindow.refused, replay.requests)}`)
    line(`  most in any window  ${grouped(fixedWindow.mostInWindow)} (limit ${grouped(limit)})`)
    line(`${`  ${who}s over limit`.padEnd(22)}${part(fixedWindow.clientsOver, replay.clients)}`)
  }

  const listed = refusedMost.slice(0, Math.min(top, MOST_LISTED))
  if (listed.length > 0) {
    line()
    const most = listed.length === 1 ? who : `${grouped(listed.length)} ${who}s`
    line(listed.length < refusedMost.length ? `The ${most} refused most:` : `The ${who}s refused:`)
    lines.push(clientTable(listed, who, width))
  }
  return `${lines.join('\n')}\n`
}

function figures({ replay, unparsed, usersMissing }: Found, who: string): [name: string, value: string][] {
  const { requests, clients, firstMs, lastMs } = replay
  const rows: [string, string][] = [['requests', grouped(requests)]]
  if (firstMs !== null && lastMs !== null)
    rows.push(['from (UTC)', moment(firstMs)], ['to (UTC)', moment(lastMs)])
  if (usersMissing > 0) rows.push(['without a user', `${part(usersMissing, requests)}, by ip`])
  rows.push(
    [`${who}s`, grouped(clients)],
    ['requests refused', part(replay.refused, requests)],
    [`${who}s refused`, part(replay.refusedClients, clients)],
  )
  if (unparsed.count > 0) rows.push(['unparsed lines', grouped(unparsed.count)])
  return rows
}

function table(rows: [name: string, value: string][]): string[] {
  const widest = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${name.padEnd(widest + 2)}${value}`)
}

/** Nothing where all happened at once. */
function overTime(timeline: Timeline, width: number, colour: boolean): string | undefined {
  const { bucketMs, admitted, refused } = timeline
  if (admitted.length < 2) return undefined
  return lineChart(
    [
      { name: 'admitted', values: admitted },
      { name: 'refused', values: refused },
    ],
    {
      width,
      height: CHART_LINES,
      title: `Requests in each ${formatDuration(bucketMs)}, UTC:`,
      xLabelAt: (bucket) => labelOf(timeline, bucket),
      colour,
    },
  )
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

function part(count: number, all: number): string {
  return all === 0 ? '0' : `${grouped(count)} (${((100 * count) / all).toFixed(1)} %)`
}

function moment(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
}
