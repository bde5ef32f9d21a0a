import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Duration } from 'millrace'
import { checkRule } from 'millrace/internal'
import { duration, positiveInteger } from '../arguments.js'
import { grouped, hasColour, Progress, type Surroundings, widthOf, wrapped } from '../terminal.js'
import { type DemoOptions, type DemoProgress, type DemoResult, runDemo } from './demo.js'
import { ENGINES } from './messages.js'
import { report } from './report.js'

const HELP_AFTER =
  'Ctrl-C ends it early, shows what was seen until then, and exits with 130. Example: millrace demo --threads 2 --limit 50'
const NARROWEST = 40
const INTERRUPTED = 130
const MOST_THREADS = 64
const MOST_CLIENTS = 2_000
const MOST_SECONDS = 3_600

/** `millrace demo`: one limit under real load, and the proof that it held. */
export function demoCommand(
  program: Command,
  surroundings: Surroundings,
  exit: (code: number) => void,
): void {
  program
    .command('demo')
    .summary('a server under load, with one limit for each client, and whether it held')
    .description(
      'Starts an HTTP server on this machine, loads it from polite and greedy clients, in turns with a limiter and ' +
        'without, and checks every admission against the limit.',
    )
    .option('-s, --seconds <count>', 'how long to load it, both servers together', upTo(MOST_SECONDS), 10)
    .option('-c, --clients <count>', 'one in five of them is greedy', upTo(MOST_CLIENTS, 2), 50)
    .option('-l, --limit <units>', 'requests that a client may make in any window', positiveInteger, 100)
    .option('-w, --window <duration>', 'such as 500ms, 1s, 1m', duration, '1s' as Duration)
    .option(
      '-t, --threads <count>',
      'threads of the server, with one limit among them',
      upTo(MOST_THREADS),
      1,
    )
    .addOption(
      new Option(
        '-e, --engine <name>',
        "who decides: the server's threads (inline), or a pool beside each (pool)",
      )
        .choices(ENGINES)
        .default('inline'),
    )
    .addOption(
      new Option('-p, --port <number>', 'where to listen, with more threads also the ports that follow')
        .argParser(port)
        .default(0, 'any free'),
    )
    .option('--json', 'print the figures as JSON')
    .addHelpText('after', () => {
      const width = widthOf(surroundings.stdout)
      return ['', ...wrapped(HELP_AFTER, width)].join('\n')
    })
    .action(async (options: DemoOptions & { json?: true }) => {
      exit(await demo(options, surroundings))
    })
}

async function demo(options: DemoOptions & { json?: true }, surroundings: Surroundings): Promise<number> {
  const { limit, window, json } = options
  const { stdout, stderr } = surroundings
  checkRule({ limit, window })
  const progress = new Progress(stderr)
  const interrupt = new AbortController()
  const onInterrupt = () => interrupt.abort() // a second Ctrl-C ends the process as usual
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
      const engine = options.engine === 'pool' ? ' with a pool of threads that decide' : ''
      const intro = `${threads}${engine}, ${grouped(options.clients)} clients, ${options.seconds} s of load, with and without the limiter in turns`
      stdout.write(`${wrapped(intro, width).join('\n')}\n\n${report(result, width, hasColour(stdout))}`)
    }
    return exitCodeOf(result)
  } finally {
    progress.done()
    process.off('SIGINT', onInterrupt)
  }
}

export function exitCodeOf({ held, stoppedEarly }: DemoResult): number {
  if (!held) return 1
  return stoppedEarly ? INTERRUPTED : 0
}

/** What fits: the seconds left always, then requests, admitted, refused, latency. */
function liveLine({ server, secondsLeft, tally }: DemoProgress, width: number): string {
  const { polite, greedy } = tally.answers
  const parts = [
    `${Math.max(0, secondsLeft).toFixed(0).padStart(3)} s left, ${server === 'with' ? 'limiter' : 'without'}`,
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
      throw new InvalidArgumentError(`Give a whole number from ${least} to ${grouped(most)}.`)
    }
    return number
  }
}

function port(text: string): number {
  const number = Number(text)
  if (!/^\d+$/.test(text) || number > 65_535) throw new InvalidArgumentError('Give a port from 0 to 65535.')
  return number
}
