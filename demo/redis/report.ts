import { styleText } from 'node:util'
import { formatDuration } from 'millrace/internal'
import { lineChart } from 'millrace-cli/dist/chart.js'
import { grouped, wrapped } from 'millrace-cli/dist/terminal.js'
import { titledTable } from 'millrace-cli/dist/titled-table.js'
import type { DemoResult } from './demo.js'
import type { ProcessResult, RunKind, RunResult } from './judge.js'

const CHART_HEIGHT = 10
const WIDEST_CHART = 100

/** The results of the demo as text of at most `width` columns. */
export function report(result: DemoResult, width: number, colour: boolean): string {
  const { redis, processes, requestsPerSecond, limit, windowMs, runs } = result
  const intro =
    `${processes} processes, one limit of ${grouped(limit)} per ${formatDuration(windowMs)}, ` +
    `${grouped(requestsPerSecond)} requests a second in all; ${redis.name} ${redis.version} on port ${redis.port}`
  const sections = runs.map((run, i) => section(run, i + 1, width, colour))
  return `${[...wrapped(intro, width), '', ...sections].join('\n')}\n`
}

function section(run: RunResult, number: number, width: number, colour: boolean): string {
  return [
    ...wrapped(`${number}. ${titleOf(run)}`, width),
    ...wrapped(promiseOf(run), width),
    '',
    chart(run, width, colour),
    '',
    titledTable(width, 'By process', table(run)),
    ...verdict(run, width, colour),
    '',
  ].join('\n')
}

function titleOf({ kind, stopped }: RunResult): string {
  if (stopped === undefined) return 'Redis answers'
  const from = seconds(stopped.fromMs)
  return `Redis stands still from ${from} to ${seconds(stopped.toMs)} (SIGSTOP), onOutage: '${kind}'`
}

const PROMISES: Record<RunKind, (run: RunResult) => string> = {
  answering: ({ limit }) => `Promised: at most ${grouped(limit)} in any window.`,
  closed: ({ limit }) =>
    `Promised: at most ${grouped(limit)} in any window. Without an answer of Redis, every request is refused.`,
  local: ({ limit, share, processes }) =>
    `Promised: below ${grouped(2 * limit)}, twice the limit, in the worst window. Without an answer of Redis, each ` +
    `process admits ${grouped(share)} by itself (limit / nodes, nodes: ${processes.length}), ` +
    'less what it has admitted before.',
}

const promiseOf = (run: RunResult): string => PROMISES[run.kind](run)

function chart({ kind, limit, windowMs, history }: RunResult, width: number, colour: boolean): string {
  const per = formatDuration(windowMs)
  const shares = { name: 'without Redis', values: history.byShare }
  return lineChart(
    [
      { name: `admitted in the last ${per}`, values: history.used },
      { name: `limit, ${grouped(limit)}`, values: history.used.map(() => limit) },
      ...(kind === 'local' ? [shares] : []),
    ],
    {
      width: Math.min(width, WIDEST_CHART),
      height: CHART_HEIGHT,
      xLabelAt: (index) => seconds((index + 1) * history.stepMs),
      colour,
    },
  )
}

function table({ kind, windowMs, processes }: RunResult): string[][] {
  const row = (title: string, value: (process: ProcessResult) => number) => {
    const values = processes.map(value)
    const sum = values.reduce((all, each) => all + each, 0)
    return [title, ...values.map(grouped), grouped(sum)]
  }
  const back = (process: ProcessResult) => seconds(process.backAfterMs ?? 0)
  return [
    ['', ...processes.map((_, i) => String(i + 1)), 'all'],
    row('requests', ({ requests }) => requests),
    row('admitted by Redis', ({ byRedis }) => byRedis),
    ...(kind === 'local' ? [row('admitted by its share', ({ byShare }) => byShare)] : []),
    row('refused: over the limit', ({ overLimit }) => overLimit),
    ...(kind === 'closed' || processes.some(({ withoutAnswer }) => withoutAnswer > 0)
      ? [row('refused: no answer', ({ withoutAnswer }) => withoutAnswer)]
      : []),
    ...(kind === 'local'
      ? [
          [
            `most by its share in ${formatDuration(windowMs)}`,
            ...processes.map((each) => grouped(each.mostByShare)),
            '',
          ],
        ]
      : []),
    ...(kind === 'answering' ? [] : [['back at Redis after', ...processes.map(back), '']]),
  ]
}

/** The verdict, and the evidence for it. */
function verdict(run: RunResult, width: number, colour: boolean): string[] {
  const { kind, held, mostInAnyWindow, limit, windowMs, contradictions } = run
  const bound = kind === 'local' ? `promised: below ${grouped(2 * limit)}` : `limit ${grouped(limit)}`
  const most = `the most that all processes admitted in any ${formatDuration(windowMs)} is ${grouped(mostInAnyWindow)} (${bound})`
  const odd =
    contradictions === 0
      ? ''
      : ` Admissions that were not between request and reply: ${grouped(contradictions)}.`
  const how = `by a log of the times at which Redis${kind === 'local' ? ' or the process' : ''} admitted them.${odd}`
  const text = wrapped(`${held ? 'Held' : 'BROKEN'}: ${most}, ${how}`, width)
  const [tint, word] = held ? (['green', 'Held'] as const) : (['red', 'BROKEN'] as const)
  if (colour) text[0] = text[0]!.replace(word, styleText(tint, word, { validateStream: false }))
  return text
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`
