import { formatDuration } from 'millrace/internal'
import { lineChart } from '../chart.js'
import { grouped, printable, shortened, wrapped } from '../terminal.js'
import { figureTable } from './figure-table.js'
import type { FixedWindow } from './fixed-window.js'
import type { RefusedClient } from './judge.js'
import { readable } from './keys.js'
import type { Replay, ReplayedRule } from './replay.js'
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
const MIN_CLIENT_WIDTH = 15 // columns: an IPv4 address

/** Renders the report with at most `width` columns. Only the chart uses colour. */
export function report(
  results: Results,
  { top, width, colour }: { top: number; width: number; colour: boolean },
): string {
  const { replay, key, fixedWindow } = results
  const { rules, refusedMost } = replay
  const lines: string[] = []
  const line = (text = '') => lines.push(...wrapped(text, width))
  const who = key === 'ip' ? 'client' : 'key'

  for (const text of rulesText(replay, key === 'ip' ? 'client' : `key (${key})`)) line(text)
  line()
  for (const row of table(figures(results, who))) lines.push(shortened(row, width))
  for (const { line: number, text } of results.unparsed.examples)
    lines.push(shortened(`  line ${number}: ${printable(text.slice(0, width))}`, width))

  if (rules.length > 1 && replay.refused > 0) {
    line()
    line('Refusals by rule (several rules may refuse one request):')
    lines.push(ruleTable(rules, who, width))
  }

  const chart = results.timeline && overTime(results.timeline, width, colour)
  if (chart !== undefined) lines.push('', chart)

  line()
  line('Accuracy, compared with an exact log of the admitted requests:')
  line(`  wrongly admitted  ${verdict(replay.wronglyAdmitted, replay.edge)}`)
  line(`  wrongly refused   ${grouped(replay.wronglyRefused)}${early(replay)}`)
  line(`An exact sliding log would have refused ${part(replay.exactRefused, replay.requests)}.`)

  if (fixedWindow) {
    line()
    const windows = rules.map(({ windowMs }) => formatDuration(windowMs))
    line(`With ${windows.length === 1 ? 'a fixed window' : 'fixed windows'} of ${list(windows)} instead:`)
    for (const row of table(fixedFigures(fixedWindow, replay, who))) line(`  ${row}`)
  }

  const listed = refusedMost.slice(0, Math.min(top, MOST_LISTED))
  if (listed.length > 0) {
    line()
    const most = listed.length === 1 ? who : `${grouped(listed.length)} ${who}s`
    line(listed.length < refusedMost.length ? `The ${most} with the most refusals:` : `The refused ${who}s:`)
    lines.push(clientTable(listed, rules, who, width))
  }
  return `${lines.join('\n')}\n`
}

/** The rules, and whom they count. */
function rulesText({ rules, edge }: Replay, per: string): string[] {
  const [first, ...others] = rules.map(({ limit, windowMs, granularityMs }) => {
    const window = formatDuration(windowMs)
    return { limit: grouped(limit), window, granularity: `granularity ${formatDuration(granularityMs)}` }
  })
  const { limit, window, granularity } = first!
  if (others.length === 0)
    return [`Limit: ${limit} requests per ${per} in any ${window}, ${edge} edge, ${granularity}`]
  const rows = [first!, ...others].map((rule): [string, string] => {
    return [`${rule.limit} in any ${rule.window}`, rule.granularity]
  })
  return [
    `Limits: requests per ${per}, all or nothing, ${edge} edge`,
    ...table(rows).map((row) => `  ${row}`),
  ]
}

/** Whom each rule refused. */
function ruleTable(rules: readonly ReplayedRule[], who: string, width: number): string {
  const names = rules.map(({ name }) => name)
  const refused = { title: 'refused', values: rules.map((rule) => rule.refused) }
  const alone = { title: 'only by it', values: rules.map((rule) => rule.refusedAlone) }
  const clients = { title: `${who}s`, values: rules.map((rule) => rule.refusedClients) }
  const leastNameWidth = Math.max(...names.map((name) => name.length))
  return figureTable('rule', names, [[refused, alone, clients], [refused, alone], [refused]], {
    leastNameWidth,
    width,
  })
}

/** With several rules, a column for each says how many requests it refused. */
function clientTable(
  clients: readonly RefusedClient[],
  rules: readonly ReplayedRule[],
  who: string,
  width: number,
): string {
  const requests = { title: 'requests', values: clients.map((client) => client.requests) }
  const refused = { title: 'refused', values: clients.map((client) => client.refused) }
  const names = clients.map(({ client }) => printable(readable(client)))
  const more =
    rules.length === 1
      ? [{ title: 'most in one window', values: clients.map(({ peaks }) => peaks[0]!) }]
      : rules.map(({ name }, i) => ({ title: `by ${name}`, values: clients.map((one) => one.refusedBy[i]!) }))
  const wide = [requests, refused, ...more]
  const sets = rules.length === 1 ? [wide, [refused]] : [wide, [refused, ...more], [refused]]
  return figureTable(who, names, sets, { leastNameWidth: MIN_CLIENT_WIDTH, width })
}

function fixedFigures({ refused, mostInWindow, clientsOver }: FixedWindow, replay: Replay, who: string) {
  const rows: [string, string][] = [['requests refused', part(refused, replay.requests)]]
  for (const [i, { limit, windowMs }] of replay.rules.entries()) {
    const window = replay.rules.length === 1 ? 'window' : formatDuration(windowMs)
    rows.push([`most in any ${window}`, `${grouped(mostInWindow[i]!)} (limit ${grouped(limit)})`])
  }
  rows.push([`${who}s over limit`, part(clientsOver, replay.clients)])
  return rows
}

/** 1s, 1m and 1h. */
function list(names: readonly string[]): string {
  const last = names.at(-1)!
  return names.length === 1 ? last : `${names.slice(0, -1).join(', ')} and ${last}`
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

function early({ wronglyRefused, refusedTooEarly, rules }: Replay): string {
  const granularity = rules.length === 1 ? formatDuration(rules[0]!.granularityMs) : 'one granularity'
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
