import { styleText } from 'node:util'
import { formatDuration } from 'millrace/internal'
import { lineChart } from '../chart.js'
import { grouped, wrapped } from '../terminal.js'
import { titledTable } from '../titled-table.js'
import type { DemoResult, KindResult, ServerResult } from './demo.js'

const CHART_HEIGHT = 12
const WIDEST_CHART = 100

/** The results of the demo as text of at most `width` columns. */
export function report(result: DemoResult, width: number, colour: boolean): string {
  const { limit, windowMs, history } = result
  const per = formatDuration(windowMs)
  const seconds = (index: number) => `${(((index + 1) * history.stepMs) / 1000).toFixed(1)} s`
  const chart =
    history.used.length === 0
      ? []
      : [
          lineChart(
            [
              { name: `admitted in the last ${per}`, values: history.used },
              { name: `limit, ${grouped(limit)}`, values: history.used.map(() => limit) },
            ],
            {
              width: Math.min(width, WIDEST_CHART),
              height: CHART_HEIGHT,
              title: 'The busiest greedy client',
              xLabelAt: seconds,
              colour,
            },
          ),
          '',
        ]
  return [
    titledTable(width, `Requests by kind of client (limit ${grouped(limit)} per ${per})`, kinds(result)),
    '',
    titledTable(width, 'Server performance', servers(result)),
    ...wrapped(
      '(The load generator runs on the same machine, so these figures vary from run to run.)',
      width,
    ),
    '',
    ...chart,
    ...verdict(result, width, colour),
    '',
  ].join('\n')
}

/** The verdict, and the evidence for it. */
function verdict(result: DemoResult, width: number, colour: boolean): string[] {
  const { held, reached, inFlight, mostInAnyWindow, limit, windowMs, stoppedEarly } = result
  const most = `the most requests of one client admitted in any ${formatDuration(windowMs)} is ${grouped(mostInAnyWindow)} (limit ${grouped(limit)})`
  const how = 'according to a log of the times at which the decisions took effect.'
  const [tint, word] = !held
    ? (['red', 'BROKEN'] as const)
    : reached
      ? (['green', 'Held'] as const)
      : (['yellow', 'Not reached'] as const)
  const text = wrapped(`${word}: ${most}, ${how}`, width)
  if (colour) text[0] = text[0]!.replace(word, styleText(tint, word, { validateStream: false }))
  return [
    ...(stoppedEarly ? ['Stopped early.'] : []),
    ...raised(inFlight, width),
    ...text,
    ...advice(result, width),
  ]
}

const raised = (inFlight: number, width: number): string[] =>
  inFlight === 1
    ? []
    : wrapped(
        `No request was refused, so the load was raised: each greedy client had ${inFlight} requests under way at a time.`,
        width,
      )

function advice({ reached, stoppedEarly }: DemoResult, width: number): string[] {
  if (reached || stoppedEarly) return []
  const text = 'This shows nothing. Choose a lower --limit or a longer --window.'
  return wrapped(text, width)
}

function kinds({ polite, greedy }: DemoResult): string[][] {
  const row = (title: string, value: (kind: KindResult) => number) => [
    title,
    grouped(value(polite)),
    grouped(value(greedy)),
  ]
  return [
    ['', `${polite.clients} polite`, `${greedy.clients} greedy`],
    row('requests', (kind) => kind.requests),
    row('admitted', (kind) => kind.admitted),
    row('refused', (kind) => kind.refused),
    row('most in any window', (kind) => kind.peak),
    ...(polite.failed + greedy.failed > 0 ? [row('failed', (kind) => kind.failed)] : []),
  ]
}

function servers({ withLimiter, withoutLimiter }: DemoResult): string[][] {
  const row = (title: string, value: (server: ServerResult) => string) => [
    title,
    value(withLimiter),
    value(withoutLimiter),
  ]
  const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : 1)} ms`
  return [
    ['', 'with limiter', 'without'],
    row('requests per second', ({ requestsPerSecond }) => grouped(Math.round(requestsPerSecond))),
    row('median latency', ({ p50Ms }) => ms(p50Ms)),
    row('p99 latency', ({ p99Ms }) => ms(p99Ms)),
    row('longest pause', ({ longestPauseMs }) => ms(longestPauseMs)),
  ]
}
