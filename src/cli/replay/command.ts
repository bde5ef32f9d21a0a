import { type Command, InvalidArgumentError, Option } from 'commander'
import { type Duration, parseDuration } from '../../core/duration.js'
import type { MillraceError } from '../../core/errors.js'
import { checkRule, type Edge } from '../../core/rule.js'
import {
  grouped,
  Progress,
  printable,
  type Surroundings,
  shortened,
  UsageError,
  widthOf,
  wrapped,
} from '../terminal.js'
import { KEYS, type KeyName, parseLine } from './access-log.js'
import { logLines } from './log-lines.js'
import { breaksPromise, type Replay, replay, type Traffic } from './replay.js'
import { report, type Unparsed } from './report.js'

interface ReplayOptions {
  limit: number
  window: Duration
  granularity?: Duration
  edge: Edge
  key: KeyName
  top: number
  json?: true
}

const HELP_AFTER = [
  'Exit codes: 0 done; 1 a promise of the limiter was broken; 2 it could not be done as asked.',
  '',
  'Example: millrace replay access.log.gz --limit 10 --window 1m',
]
const EXAMPLES = 2
const NARROWEST = 20

/** `millrace replay FILE`: what a limit would have done to the traffic of an access log. */
export function replayCommand(
  program: Command,
  surroundings: Surroundings,
  exit: (code: number) => void,
): void {
  program
    .command('replay')
    .summary('what a limit would have done to the traffic of an access log')
    .description(
      'Puts the requests of an access log (Common or Combined Log Format, plain or gzipped) in order of time, asks a ' +
        'limiter about each by the log’s own clock, and says who would have been refused and how exact that was.',
    )
    .argument('<file>', 'the log; - for standard input')
    .option('-l, --limit <units>', 'requests that a client may make in any window', positiveInteger, 60)
    .option('-w, --window <duration>', 'such as 10s, 1m, 1h, 1d', duration, '1m' as Duration)
    .option(
      '-g, --granularity <duration>',
      'a whole part of the window (default: a sixtieth of it)',
      duration,
    )
    .addOption(
      new Option('-e, --edge <edge>', 'how the oldest granule counts')
        .choices(['strict', 'smooth'])
        .default('strict'),
    )
    .addOption(new Option('-k, --key <field>', 'who is limited').choices(KEYS).default('ip'))
    .option('-t, --top <count>', 'how many of the refused clients to list', positiveInteger, 10)
    .option('--json', 'print the figures as JSON')
    .addHelpText('after', () => {
      const width = widthOf(surroundings.stdout)
      return ['', ...HELP_AFTER.flatMap((text) => wrapped(text, width))].join('\n')
    })
    .action(async (file: string, options: ReplayOptions) => {
      exit(await runReplay(file, options, surroundings))
    })
}

async function runReplay(file: string, options: ReplayOptions, surroundings: Surroundings): Promise<number> {
  const { limit, window, granularity, edge, key, top, json } = options
  const { stdin, stdout, stderr } = surroundings
  const rule = { limit, window, edge, ...(granularity === undefined ? {} : { granularity }) }
  checkRule(rule) // before the log is read, which may take long
  const progress = new Progress(stderr)
  let found: Replay
  let unparsed: Unparsed
  try {
    const read = await readTraffic(file, key, stdin, progress)
    unparsed = read.unparsed
    found = replay(read.traffic, rule, (done) => {
      progress.show(() => `replaying: ${grouped(done)} of ${grouped(read.traffic.atMs.length)} requests`)
    })
  } catch (error) {
    if ((error as MillraceError).code !== 'ERR_MILLRACE_ARENA_TOO_LARGE') throw error
    throw new UsageError('granularity: too fine for so many clients; give a coarser one', { cause: error })
  } finally {
    progress.done()
  }
  if (json) {
    const { refusedMost, ...figures } = found
    const all = { ...figures, unparsed: unparsed.count, key, topRefused: refusedMost.slice(0, top) }
    stdout.write(`${JSON.stringify(all, undefined, 2)}\n`)
  } else {
    stdout.write(report(found, unparsed, top, Math.max(NARROWEST, widthOf(stdout))))
  }
  return breaksPromise(found) ? 1 : 0
}

async function readTraffic(
  file: string,
  key: KeyName,
  stdin: NodeJS.ReadableStream,
  progress: Progress,
): Promise<{ traffic: Traffic; unparsed: Unparsed }> {
  const clients: string[] = []
  const numbers = new Map<string, number>()
  const atMs: number[] = []
  const client: number[] = []
  const unparsed: Unparsed = { count: 0, examples: [] }
  let line = 0
  const lines = logLines(file, stdin, (read, all) => {
    const part = all === undefined ? '' : ` (${Math.floor((100 * read) / Math.max(all, 1))} %)`
    progress.show(() => `reading: ${grouped(line)} lines${part}`)
  })
  for await (const text of lines) {
    line++
    if (text === '') continue
    const request = parseLine(text)
    if (request === undefined) {
      unparsed.count++
      if (unparsed.examples.length < EXAMPLES) unparsed.examples.push({ line, text })
      continue
    }
    const name = request[key]
    let number = numbers.get(name)
    if (number === undefined) {
      const copy = Buffer.from(name).toString() // `name` is a slice, and would keep its part of the log in memory
      number = clients.push(copy) - 1
      numbers.set(copy, number)
    }
    atMs.push(request.atMs)
    client.push(number)
  }
  if (atMs.length === 0 && unparsed.count > 0) {
    const first = shortened(printable(unparsed.examples[0]!.text.slice(0, 120)), 120)
    throw new UsageError(
      `no line (of ${grouped(unparsed.count)}) is in the Common or Combined Log Format; the first is: ${first}`,
    )
  }
  return { traffic: { clients, atMs, client }, unparsed }
}

function positiveInteger(text: string): number {
  const number = Number(text)
  if (!/^\d+$/.test(text) || number < 1) throw new InvalidArgumentError('Give a whole number of 1 or more.')
  return number
}

function duration(text: string): Duration {
  const given = /^\d+(\.\d+)?$/.test(text) ? Number(text) : (text as Duration)
  try {
    parseDuration(given, 'duration')
  } catch {
    throw new InvalidArgumentError('Give a duration above 0 such as 250ms, 10s, 15m, 1h or 30d.')
  }
  return given
}
