import { formatDuration } from 'millrace/internal'
import { lineChart } from '../chart.js'
import { grouped, printable, shortened, wrapped } from '../terminal.js'
import type { Compared } from './algorithms.js'
import { figureTable } from './figure-table.js'
import type { RefusedClient } from './judge.js'
import { readable } from './keys.js'
import { admitsTooMany, isEarlyByGranularity, type Replay, type ReplayedRule } from './replay.js'
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
  /** The format of the log; null if it is empty. */
  format: string | null
  formatGuessed: boolean
  /** Lines without a request. */
  withoutRequest: number
  /** Present if a chart fits. */
  timeline?: Timeline
  /** Present with `--compare`. */
  compared?: readonly Compared[]
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
  const { replay, key, compared } = results
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
  line(`  wrongly admitted  ${verdict(replay)}`)
  line(`  wrongly refused   ${grouped(replay.wronglyRefused)}${early(replay)}`)
  line(`An exact sliding log would have refused ${part(replay.exactRefused, replay.requests)}.`)

  if (compared !== undefined) {
    line()
    line(`The same requests by each algorithm${limitText(rules)}:`)
    lines.push(comparedTable(compared, replay, who, width))
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
  const areSliding = rules.every(({ algorithm }) => algorithm === 'sliding-window')
  const within = (rule: ReplayedRule) => {
    const inAny = rule.algorithm === 'sliding-window' ? 'in any' : 'in'
    return `${inAny} ${formatDuration(rule.windowMs)}`
  }
  const first = rules[0]!
  if (rules.length === 1) {
    const how = areSliding ? `${edge} edge, ${shapeOf(first)}` : shapeOf(first)
    return [`Limit: ${grouped(first.limit)} requests per ${per} ${within(first)}, ${how}`]
  }
  const rows = rules.map((rule): [string, string] => {
    return [`${grouped(rule.limit)} ${within(rule)}`, shapeOf(rule)]
  })
  const how = areSliding ? `, ${edge} edge` : ''
  return [`Limits: requests per ${per}, all or nothing${how}`, ...table(rows).map((row) => `  ${row}`)]
}

/** How a rule counts. */
function shapeOf({ algorithm, granularityMs, align, burst }: ReplayedRule): string {
  if (algorithm === 'sliding-window') return `granularity ${formatDuration(granularityMs)}`
  const options = [...(align ? [`align ${align}`] : []), ...(burst ? [`burst ${grouped(burst)}`] : [])]
  return [algorithm, ...options].join(', ')
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

/** The limit and its window, if there is one rule. Several are in the head of the report. */
function limitText(rules: readonly ReplayedRule[]): string {
  const [{ limit, windowMs }, ...others] = rules as [ReplayedRule, ...ReplayedRule[]]
  return others.length > 0 ? '' : ` (limit ${grouped(limit)} in ${formatDuration(windowMs)})`
}

/** The algorithm of the replay, then the others. */
function comparedTable(
  compared: readonly Compared[],
  { rules, admissions }: Replay,
  who: string,
  width: number,
): string {
  const { algorithm } = rules[0]!
  const rows = [{ algorithm, ...admissions }, ...compared.filter((other) => other.algorithm !== algorithm)]
  const names = rows.map((row) => row.algorithm)
  const refused = { title: 'refused', values: rows.map((row) => row.refused) }
  const most = rules.map(({ windowMs }, i) => ({
    title: `most in ${formatDuration(windowMs)}`,
    values: rows.map(({ mostInWindow }) => mostInWindow[i]!),
  }))
  const over = { title: `${who}s over`, values: rows.map(({ clientsOver }) => clientsOver) }
  const leastNameWidth = Math.max(...names.map((name) => name.length))
  const sets = [[refused, ...most, over], [refused, ...most], [refused, over], [refused]]
  return figureTable('algorithm', names, sets, { leastNameWidth, width })
}

function figures(results: Results, who: string): [name: string, value: string][] {
  const { replay, unparsed, usersMissing, format, formatGuessed, withoutRequest } = results
  const { requests, clients, firstMs, lastMs } = replay
  const rows: [string, string][] = [['requests', grouped(requests)]]
  if (format !== null) rows.unshift(['format', formatGuessed ? `${format} (guessed)` : format])
  if (firstMs !== null && lastMs !== null)
    rows.push(['from (UTC)', moment(firstMs)], ['to (UTC)', moment(lastMs)])
  if (usersMissing > 0) rows.push(['without a user', `${part(usersMissing, requests)}, counted by ip`])
  rows.push(
    [`${who}s`, grouped(clients)],
    ['requests refused', part(replay.refused, requests)],
    [`${who}s refused`, part(replay.refusedClients, clients)],
  )
  if (withoutRequest > 0) rows.push(['lines of no request', grouped(withoutRequest)])
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

function verdict(replay: Replay): string {
  const { wronglyAdmitted, rules } = replay
  if (wronglyAdmitted === 0) return '0'
  const { algorithm } = rules[0]!
  const cause = algorithm === 'sliding-window' ? 'the smooth edge' : algorithm
  const why = admitsTooMany(replay) ? 'violates a guarantee' : `possible with ${cause}`
  return `${grouped(wronglyAdmitted)} (${why})`
}

function early({ wronglyRefused, refusedTooEarly, rules }: Replay): string {
  if (!rules.every(isEarlyByGranularity)) return ''
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
