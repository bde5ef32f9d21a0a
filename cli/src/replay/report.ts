import { formatDuration } from 'millrace/internal'
import { lineChart } from '../chart.js'
import { grouped, printable, shortened, wrapped } from '../terminal.js'
import { clientTable } from './client-table.js'
import type { FixedWindow } from './fixed-window.js'
import type { Replay } from './replay.js'
import { labelOf, type Timeline } from './timeline.js'
import type { Unparsed } from './traffic.js'

/** The contents of the report. */
export interface Results {
  replay: Replay
  unparsed: Unparsed
  /** The name of the key, such as `ip`. */
  key: string
  /** Requests without a user that count by address, if the key needs a user. */
  usersMissing: number
  /** Present if a chart fits. */
  timeline?: Timeline
  /** Present with `--compare fixed-window`. */
  fixedWindow?: FixedWindow
}

/** The time for a table grows with the square of its rows. The JSON output has all rows. */
const MOST_LISTED = 1_000
const CHART_LINES = 14

/** Renders the report with at most `width` columns. Only the chart uses colour. */
export function report(
  results: Results,
  { top, width, colour }: { top: number; width: number; colour: boolean },
): string {
  const { replay, key, fixedWindow } = results
  const { limit, windowMs, granularityMs, edge, refusedMost } = replay
  const lines: string[] = []
  const line = (text = '') => lines.push(...wrapped(text, width))
  const who = key === 'ip' ? 'client' : 'key'
  const per = key === 'ip' ? 'client' : `key (${key})`
  const window = formatDuration(windowMs)

  line(
    `Limit: ${grouped(limit)} requests per ${per} in any ${window}, ${edge} edge, granularity ${formatDuration(granularityMs)}`,
  )
  line()
  for (const row of table(figures(results, who))) lines.push(shortened(row, width))
  for (const { line: number, text } of results.unparsed.examples)
    lines.push(shortened(`  line ${number}: ${printable(text.slice(0, width))}`, width))

  const chart = results.timeline && overTime(results.timeline, width, colour)
  if (chart !== undefined) lines.push('', chart)

  line()
  line('Accuracy, compared with an exact log of the admitted requests:')
  line(`  wrongly admitted  ${verdict(replay.wronglyAdmitted, edge)}`)
  line(`  wrongly refused   ${grouped(replay.wronglyRefused)}${early(replay)}`)
  line(`An exact sliding log would have refused ${part(replay.exactRefused, replay.requests)}.`)

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
    line(listed.length < refusedMost.length ? `The ${most} with the most refusals:` : `The refused ${who}s:`)
    lines.push(clientTable(listed, who, width))
  }
  return `${lines.join('\n')}\n`
}

function figures({ replay, unparsed, usersMissing }: Results, who: string): [name: string, value: string][] {
  const { requests, clients, firstMs, lastMs } = replay
  const rows: [string, string][] = [['requests', grouped(requests)]]
  if (firstMs !== null && lastMs !== null)
    rows.push(['from (UTC)', moment(firstMs)], ['to (UTC)', moment(lastMs)])
  if (usersMissing > 0) rows.push(['without a user', `${part(usersMissing, requests)}, counted by ip`])
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

/** The chart of requests over time; undefined if all requests fall into one span. */
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
      title: `Requests per ${formatDuration(bucketMs)} (UTC):`,
      xLabelAt: (bucket) => labelOf(timeline, bucket),
      colour,
    },
  )
}

function verdict(wronglyAdmitted: number, edge: Replay['edge']): string {
  if (wronglyAdmitted === 0) return '0'
  const why = edge === 'strict' ? 'violates a guarantee' : 'possible with the smooth edge'
  return `${grouped(wronglyAdmitted)} (${why})`
}

function early({ wronglyRefused, refusedTooEarly, granularityMs }: Replay): string {
  const granularity = formatDuration(granularityMs)
  if (refusedTooEarly > 0)
    return ` (${grouped(refusedTooEarly)} more than ${granularity} early, which violates a guarantee)`
  return wronglyRefused > 0 ? ` (none more than ${granularity} early)` : ''
}

function part(count: number, all: number): string {
  return all === 0 ? '0' : `${grouped(count)} (${((100 * count) / all).toFixed(1)} %)`
}

function moment(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
}
