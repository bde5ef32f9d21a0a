import { type Command, Option } from 'commander'
import type { Duration, Edge, MillraceError } from 'millrace'
import { checkRule } from 'millrace/internal'
import { duration, positiveInteger } from '../arguments.js'
import {
  type Environment,
  grouped,
  hasColour,
  helpParagraph,
  Progress,
  UsageError,
  widthOf,
} from '../terminal.js'
import { fixedWindow } from './fixed-window.js'
import { type Key, parseKey, readable } from './keys.js'
import { type Replay, replay, violatesGuarantee } from './replay.js'
import { report } from './report.js'
import { timeline } from './timeline.js'
import { readTraffic } from './traffic.js'

interface ReplayOptions {
  limit: number
  window: Duration
  granularity?: Duration
  edge: Edge
  key: Key
  compare?: 'fixed-window'
  top: number
  json?: true
}

const EXAMPLE = 'Example: millrace replay access.log.gz -l 10 -w 1m -c fixed-window'
const NARROWEST = 20
const NARROWEST_CHART = 40
const WIDEST_CHART = 120
/** The columns of the y axis with its figures, up to `1,000`. */
const CHART_MARGIN = 7

/** `millrace replay FILE`: replays the requests of an access log against a limit. */
export function replayCommand(
  program: Command,
  environment: Environment,
  exit: (code: number) => void,
): void {
  program
    .command('replay')
    .summary('replay an access log against a limit')
    .description(
      'Reads an access log (Common or Combined Log Format, plain or gzipped), sorts its requests by time, and decides ' +
        'each with a limiter at its logged time. Reports who would have been refused, and how exact that is.',
    )
    .argument('<file>', 'path of an access log, or - for standard input')
    .option('-l, --limit <units>', 'requests per client in any window', positiveInteger, 60)
    .option(
      '-w, --window <duration>',
      'length of the window, such as 10s, 1m, 1h, 1d',
      duration,
      '1m' as Duration,
    )
    .option(
      '-g, --granularity <duration>',
      'length of a bucket; divides the window (default: 1/60 of it)',
      duration,
    )
    .addOption(
      new Option('-e, --edge <edge>', 'how the oldest bucket counts')
        .choices(['strict', 'smooth'])
        .default('strict'),
    )
    .addOption(
      new Option(
        '-k, --key <fields>',
        'the key of the limit: ip, user or path, or several joined by +, such as ip+path. Paths exclude the query; ' +
          'requests without a user (-) count by ip',
      )
        .argParser(parseKey)
        .default(parseKey('ip'), 'ip'),
    )
    .addOption(
      new Option('-c, --compare <other>', 'also show the result of another algorithm').choices([
        'fixed-window',
      ]),
    )
    .option('-t, --top <count>', 'number of refused clients to list', positiveInteger, 10)
    .option('--json', 'print the results as JSON')
    .addHelpText('after', () => helpParagraph(EXAMPLE, environment.stdout))
    .action(async (file: string, options: ReplayOptions) => {
      exit(await runReplay(file, options, environment))
    })
}

async function runReplay(file: string, options: ReplayOptions, environment: Environment): Promise<number> {
  const { limit, window, granularity, edge, key, compare, top, json } = options
  const { stdin, stdout, stderr } = environment
  const rule = { limit, window, edge, ...(granularity === undefined ? {} : { granularity }) }
  checkRule(rule) // fails before reading the log, which may take long
  const progress = new Progress(stderr)
  let read: Awaited<ReturnType<typeof readTraffic>>
  let replayed: Replay
  try {
    read = await readTraffic(file, key, stdin, progress)
    const { length } = read.traffic.atMs
    replayed = replay(read.traffic, rule, (done) => {
      progress.show(() => `replaying: ${grouped(done)} of ${grouped(length)} requests`)
    })
  } catch (error) {
    if ((error as MillraceError).code !== 'ERR_MILLRACE_ARENA_TOO_LARGE') throw error
    throw new UsageError('granularity: too fine for this many clients; choose a coarser one', {
      cause: error,
    })
  } finally {
    progress.done()
  }
  const { traffic, unparsed, withoutUser } = read
  const compared = compare === undefined ? {} : { fixedWindow: fixedWindow(traffic, replayed) }
  if (json) {
    const { refusedMost, admitted, ...figures } = replayed
    const topRefused = refusedMost.slice(0, top).map((one) => ({ ...one, client: readable(one.client) }))
    const all = { ...figures, ...compared, unparsed: unparsed.count, key: key.name, withoutUser, topRefused }
    stdout.write(`${JSON.stringify(all, undefined, 2)}\n`)
  } else {
    const width = Math.max(NARROWEST, widthOf(stdout))
    const chart = Math.min(width, WIDEST_CHART)
    const usersMissing = key.needsUser ? withoutUser : 0
    const results = {
      ...{ replay: replayed, unparsed, key: key.name, usersMissing, ...compared },
      ...(width < NARROWEST_CHART
        ? {}
        : { timeline: timeline(traffic, replayed.admitted, chart - CHART_MARGIN) }),
    }
    stdout.write(report(results, { top, width, colour: hasColour(stdout) }))
  }
  return violatesGuarantee(replayed) ? 1 : 0
}
