import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Duration } from 'millrace'
import { checkRule } from 'millrace/internal'
import { duration, positiveInteger } from '../arguments.js'
import {
  type Environment,
  grouped,
  hasColour,
  helpParagraph,
  Progress,
  widthOf,
  wrapped,
} from '../terminal.js'
import { type DemoOptions, type DemoProgress, type DemoResult, runDemo } from './demo.js'
import { ENGINES } from './messages.js'
import { report } from './report.js'

const HELP_AFTER =
  'Ctrl-C stops the demo early, prints the results so far, and exits with 130. Example: millrace demo --threads 2 --limit 50'
const NARROWEST = 40
const INTERRUPTED = 130
const MOST_THREADS = 64
const MOST_CLIENTS = 2_000
const MOST_SECONDS = 3_600

/** `millrace demo`: loads a server with one limit and checks that the limit holds. */
export function demoCommand(program: Command, environment: Environment, exit: (code: number) => void): void {
  program
    .command('demo')
    .summary('load a server that has a limit per client, and check the limit')
    .description(
      'Starts an HTTP server on this machine and loads it with polite and greedy clients, alternately with and without ' +
        'a limiter. Checks every admission against the limit. If no request was refused, it raises the load; if still none ' +
        'is, it exits with 1.',
    )
    .option('-s, --seconds <count>', 'seconds of load in total', upTo(MOST_SECONDS), 10)
    .option('-c, --clients <count>', 'number of clients; one in five is greedy', upTo(MOST_CLIENTS, 2), 50)
    .option('-l, --limit <units>', 'requests per client in any window', positiveInteger, 100)
    .option(
      '-w, --window <duration>',
      'length of the window, such as 500ms, 1s, 1m',
      duration,
      '1s' as Duration,
    )
    .option('-t, --threads <count>', 'server threads, which share the limit', upTo(MOST_THREADS), 1)
    .addOption(
      new Option(
        '-e, --engine <name>',
        "where decisions run: on the server's threads (inline) or on worker threads (pool)",
      )
        .choices(ENGINES)
        .default('inline'),
    )
    .addOption(
      new Option('-p, --port <number>', 'port to listen on; more threads use the ports after it')
        .argParser(port)
        .default(0, 'any free port'),
    )
    .option('--json', 'print the results as JSON')
    .addHelpText('after', () => helpParagraph(HELP_AFTER, environment.stdout))
    .action(async (options: DemoOptions & { json?: true }) => {
      exit(await demo(options, environment))
    })
}

async function demo(options: DemoOptions & { json?: true }, environment: Environment): Promise<number> {
  const { limit, window, json } = options
  const { stdout, stderr } = environment
  checkRule({ limit, window })
  const progress = new Progress(stderr)
  const interrupt = new AbortController()
  const onInterrupt = () => interrupt.abort() // a second Ctrl-C ends the process
  process.once('SIGINT', onInterrupt)
  try {
    const result = await runDemo(options, interrupt.signal, (soFar) =>
      progress.show(() => liveLine(soFar, widthOf(stderr))),
    )
    progress.done()
    if (json) stdout.write(`${JSON.stringify(result, undefined, 2)}\n`)
    else {
      const width = Math.max(NARROWEST, widthOf(stdout))
      const threads = options.threads === 1 ? '1 server thread' : `${options.threads} server threads`
      const engine = options.engine === 'pool' ? ' with a pool of worker threads' : ''
      const intro = `${threads}${engine}, ${grouped(options.clients)} clients, ${options.seconds} s of load, alternately with and without the limiter`
      stdout.write(`${wrapped(intro, width).join('\n')}\n\n${report(result, width, hasColour(stdout))}`)
    }
    return exitCodeOf(result)
  } finally {
    progress.done()
    process.off('SIGINT', onInterrupt)
  }
}

export function exitCodeOf({ held, reached, stoppedEarly }: DemoResult): number {
  if (!held) return 1
  if (stoppedEarly) return INTERRUPTED
  return reached ? 0 : 1
}

/** The progress line: always the seconds left, then as many of the other figures as fit. */
function liveLine({ server, secondsLeft, tally }: DemoProgress, width: number): string {
  const { polite, greedy } = tally.responses
  const parts = [
    `${Math.max(0, secondsLeft).toFixed(0).padStart(3)} s left, ${server} limiter`,
    `${grouped(tally.requests)} requests`,
    ...(server === 'with'
      ? [
          `${grouped(polite.admitted + greedy.admitted)} admitted`,
          `${grouped(polite.refused + greedy.refused)} refused`,
        ]
      : []),
    `p50 ${(tally.latencyUs.percentile(50) / 1000).toFixed(2)} ms`,
  ]
  let line = parts[0]!
  for (const part of parts.slice(1)) {
    if (line.length + 3 + part.length >= width) break
    line += ` · ${part}`
  }
  return line
}

function upTo(most: number, least = 1) {
  return (text: string): number => {
    const number = Number(text)
    if (!/^\d+$/.test(text) || number < least || number > most) {
      throw new InvalidArgumentError(`Expected a whole number from ${least} to ${grouped(most)}.`)
    }
    return number
  }
}

function port(text: string): number {
  const number = Number(text)
  if (!/^\d+$/.test(text) || number > 65_535)
    throw new InvalidArgumentError('Expected a port from 0 to 65535.')
  return number
}
