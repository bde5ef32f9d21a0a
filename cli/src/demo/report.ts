import { styleText } from 'node:util'
import Table from 'cli-table3'
import { formatDuration } from 'millrace/internal'
import { lineChart } from '../chart.js'
import { grouped, wrapped } from '../terminal.js'
import type { DemoResult, KindResult, ServerResult } from './demo.js'

const CHART_HEIGHT = 12
const WIDEST_CHART = 100

/** What the demo found, for people: at most `width` characters wide. */
export function report(result: DemoResult, width: number, colour: boolean): string {
  const { limit, windowMs, course } = result
  const per = formatDuration(windowMs)
  const seconds = (index: number) => `${(((index + 1) * course.stepMs) / 1000).toFixed(1)} s`
  const chart =
    course.used.length === 0
      ? []
      : [
          lineChart(
            [
              { name: `admitted in the last ${per}`, values: course.used },
              { name: `limit, ${grouped(limit)}`, values: course.used.map(() => limit) },
            ],
            {
              width: Math.min(width, WIDEST_CHART),
              height: CHART_HEIGHT,
              title: 'A greedy client',
              xLabelAt: seconds,
              colour,
            },
          ),
          '',
        ]
  return [
    fitting(width, `Who asked, and was let in (limit ${grouped(limit)} in ${per})`, kinds(result)),
    '',
    fitting(width, 'The server under this load', servers(result)),
    ...wrapped('(The load comes from this machine, too: these figures move from run to run.)', width),
    '',
    ...chart,
    ...verdict(result, width, colour),
    '',
  ].join('\n')
}

/** The last word, and how it was found out. */
function verdict(
  { held, mostInAnyWindow, limit, windowMs, stoppedEarly }: DemoResult,
  width: number,
  colour: boolean,
): string[] {
  const most = `the most that any client was admitted in any ${formatDuration(windowMs)} is ${grouped(mostInAnyWindow)} of ${grouped(limit)}`
  const how = 'by a log of the moments at which the decisions took effect.'
  const text = wrapped(`${held ? 'Held' : 'BROKEN'}: ${most}, ${how}`, width)
  const [tint, word] = held ? (['green', 'Held'] as const) : (['red', 'BROKEN'] as const)
  if (colour) text[0] = text[0]!.replace(word, styleText(tint, word, { validateStream: false }))
  return [...(stoppedEarly ? ['Stopped early.'] : []), ...text]
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
    row('requests a second', ({ requestsPerSecond }) => grouped(Math.round(requestsPerSecond))),
    row('latency, median', ({ p50Ms }) => ms(p50Ms)),
    row('latency, p99', ({ p99Ms }) => ms(p99Ms)),
    row('longest pause', ({ longestPauseMs }) => ms(longestPauseMs)),
  ]
}

/** A table below its title. */
function fitting(width: number, title: string, [head, ...rows]: string[][]): string {
  const table = new Table({
    head: head!,
    colAligns: ['left', 'right', 'right'],
    style: {
      head: [],
      border: [],
      compact: true,
      ...(width < NARROW ? { 'padding-left': 0, 'padding-right': 0 } : {}),
    },
    ...(width < NARROW ? { chars: BORDERLESS } : {}),
  })
  table.push(...rows)
  return [...wrapped(title, width), table.toString()].join('\n')
}

/** Below this a table goes without its frame: figures matter more. */
const NARROW = 50
const BORDERLESS = {
  ...Object.fromEntries(
    [
      'top',
      'top-mid',
      'top-left',
      'top-right',
      'bottom',
      'bottom-mid',
      'bottom-left',
      'bottom-right',
      'left',
      'left-mid',
      'mid',
      'mid-mid',
      'right',
      'right-mid',
    ].map((part) => [part, '']),
  ),
  middle: ' ',
}
