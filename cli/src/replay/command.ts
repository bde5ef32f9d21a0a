import { type Command, Option } from 'commander'
import type { Duration, Edge, MillraceError } from 'millrace'
import { checkRule } from 'millrace/internal'
import { duration, positiveInteger } from '../arguments.js'
import { grouped, hasColour, Progress, type Surroundings, UsageError, widthOf, wrapped } from '../terminal.js'
import { fixedWindow } from './fixed-window.js'
import { type Key, parseKey, readable } from './keys.js'
import { breaksPromise, type Replay, replay } from './replay.js'
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
/** The y axis and its figures, up to `1,000`. */
const CHART_MARGIN = 7

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
    .argument('<file>', 'the path of an access log; - for standard input')
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
    .addOption(
      new Option(
        '-k, --key <fields>',
        'what is limited: ip, user or path, or several joined by +, such as ip+path. A path is without its query; ' +
          'requests without a user (-) are counted by their ip',
      )
        .argParser(parseKey)
        .default(parseKey('ip'), 'ip'),
    )
    .addOption(
      new Option(
        '-c, --compare <other>',
        'what a counter begun anew each window would have let through',
      ).choices(['fixed-window']),
    )
    .option('-t, --top <count>', 'how many of the refused clients to list', positiveInteger, 10)
    .option('--json', 'print the figures as JSON')
    .addHelpText('after', () => ['', ...wrapped(EXAMPLE, widthOf(surroundings.stdout))].join('\n'))
    .action(async (file: string, options: ReplayOptions) => {
      exit(await runReplay(file, options, surroundings))
    })
}

async function runReplay(file: string, options: ReplayOptions, surroundings: Surroundings): Promise<number> {
  const { limit, window, granularity, edge, key, compare, top, json } = options
  const { stdin, stdout, stderr } = surroundings
  const rule = { limit, window, edge, ...(granularity === undefined ? {} : { granularity }) }
  checkRule(rule) // before the log is read, which may take long
  const progress = new Progress(stderr)
  let read: Awaited<ReturnType<typeof readTraffic>>
  let found: Replay
  try {
    read = await readTraffic(file, key, stdin, progress)
    const { length } = read.traffic.atMs
    found = replay(read.traffic, rule, (done) => {
      progress.show(() => `replaying: ${grouped(done)} of ${grouped(length)} requests`)
    })
  } catch (error) {
    if ((error as MillraceError).code !== 'ERR_MILLRACE_ARENA_TOO_LARGE') throw error
    throw new UsageError('granularity: too fine for so many clients; give a coarser one', { cause: error })
  } finally {
    progress.done()
  }
  const { traffic, unparsed, withoutUser } = read
  const compared = compare === undefined ? {} : { fixedWindow: fixedWindow(traffic, found) }
  if (json) {
    const { refusedMost, admitted, ...figures } = found
    const topRefused = refusedMost.slice(0, top).map((one) => ({ ...one, client: readable(one.client) }))
    const all = { ...figures, ...compared, unparsed: unparsed.count, key: key.name, withoutUser, topRefused }
    stdout.write(`${JSON.stringify(all, undefined, 2)}\n`)
  } else {
    const width = Math.max(NARROWEST, widthOf(stdout))
    const chart = Math.min(width, WIDEST_CHART)
    const usersMissing = key.needsUser ? withoutUser : 0
    const told = {
      ...{ replay: found, unparsed, key: key.name, usersMissing, ...compared },
      ...(width < NARROWEST_CHART
        ? {}
        : { timeline: timeline(traffic, found.admitted, chart - CHART_MARGIN) }),
    }
    stdout.write(report(told, { top, width, colour: hasColour(stdout) }))
  }
  return breaksPromise(found) ? 1 : 0
}
