import { type Command, Option } from 'commander'
import type { AlgorithmName, Alignment, Duration, Edge, MillraceError } from 'millrace'
import { duration, type LimitIn, limitIn, positiveInteger } from '../arguments.js'
import {
  type Environment,
  grouped,
  hasColour,
  helpParagraph,
  inertJson,
  Progress,
  UsageError,
  widthOf,
} from '../terminal.js'
import {
  ALGORITHM_NAMES,
  algorithmNames,
  type Compared,
  comparedRules,
  comparedWith,
  rulesOf,
} from './algorithms.js'
import { FORMAT_NAMES, type FormatName, isJson } from './formats.js'
import { figuresOf } from './json.js'
import { type Key, parseKey } from './keys.js'
import { type Replay, replay, violatesGuarantee } from './replay.js'
import { report } from './report.js'
import { timeline } from './timeline.js'
import { readTraffic } from './traffic.js'

interface ReplayOptions {
  limit: number
  window: Duration
  rule?: LimitIn[]
  algorithm: AlgorithmName
  granularity?: Duration
  edge?: Edge
  align?: Alignment
  burst?: number
  format: FormatName | 'auto'
  timeField?: string
  keyField?: string
  key: Key
  compare?: AlgorithmName[]
  top: number
  json?: true
}

const EXAMPLE = 'Example: millrace replay access.log.gz -l 10 -w 1m -c fixed-window,token-bucket'
const MOST_RULES = 16
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
      '-r, --rule <limit/window>',
      'a limit and its window, such as 10/1s, instead of -l and -w. Repeat it for several rules: a request must fit ' +
        'all of them',
      limitIn,
    )
    .addOption(
      new Option('-a, --algorithm <name>', 'how the limit counts')
        .choices(ALGORITHM_NAMES)
        .default('sliding-window'),
    )
    .option(
      '-g, --granularity <duration>',
      'of sliding-window, the length of a bucket; divides the window, or each of several (default: 1/60 of it)',
      duration,
    )
    .addOption(
      new Option(
        '-e, --edge <edge>',
        'of sliding-window, how the oldest bucket counts (default: strict)',
      ).choices(['strict', 'smooth']),
    )
    .addOption(
      new Option(
        '--align <start>',
        'of fixed-window, where windows begin: by the clock in UTC, or at the first request of a client (default: clock)',
      ).choices(['clock', 'first']),
    )
    .option(
      '-b, --burst <units>',
      'of token-bucket and leaky-bucket, requests at once (default: the limit)',
      positiveInteger,
    )
    .addOption(
      new Option(
        '-f, --format <name>',
        'of the log: common (and combined), JSON lines of nginx, pino (also Fastify), caddy or traefik, any other json, ' +
          'or AWS load balancers (alb, elb)',
      )
        .choices(['auto', ...FORMAT_NAMES])
        .default('auto', 'the first lines tell'),
    )
    .option('--time-field <path>', 'of JSON, the field of the time, such as @timestamp or request.at')
    .option(
      '--key-field <path>',
      'of JSON, the field of the user, such as req.headers.x-api-key; implies -k user',
    )
    .addOption(
      new Option(
        '-k, --key <fields>',
        'the key of the limit: ip, user or path, or several joined by +, such as ip+path. Paths exclude the query; ' +
          'requests without a user (-) count by ip, and IPv6 by its network of 56 bits',
      )
        .argParser(parseKey)
        .default(parseKey('ip'), 'ip'),
    )
    .addOption(
      new Option(
        '-c, --compare <names>',
        'also show the results of other algorithms, joined by commas. Each gets the options above that it has',
      ).argParser(algorithmNames),
    )
    .option('-t, --top <count>', 'number of refused clients to list', positiveInteger, 10)
    .option('--json', 'print the results as JSON')
    .addHelpText('after', () => helpParagraph(EXAMPLE, environment.stdout))
    .action(async (file: string, options: ReplayOptions, command: Command) => {
      checkNoLimitBeside(command, options)
      checkNamedFields(command, options)
      exit(await runReplay(file, options, environment))
    })
}

/** A rule has a limit and a window of its own. */
function checkNoLimitBeside(command: Command, { rule, limit, window }: ReplayOptions): void {
  if (rule === undefined) return
  for (const [name, value] of Object.entries({ limit, window })) {
    if (command.getOptionValueSource(name) === 'default') continue
    const { flags } = command.options.find((option) => option.attributeName() === name)!
    command.error(
      `option '${flags}' argument '${value}' cannot be used with option '-r, --rule <limit/window>'. Expected one ` +
        `rule more, such as --rule ${limit}/${window}`,
    )
  }
  if (rule.length > MOST_RULES)
    command.error(
      `option '-r, --rule <limit/window>' is given ${rule.length} times. Expected at most ${MOST_RULES} rules`,
    )
}

/** Only JSON has fields with names. The field of the user is the key, unless there is another one. */
function checkNamedFields(command: Command, options: ReplayOptions): void {
  const { format } = options
  for (const name of ['timeField', 'keyField'] as const) {
    if (options[name] === undefined || format === 'auto' || isJson(format)) continue
    const { flags } = command.options.find((option) => option.attributeName() === name)!
    command.error(`option '${flags}' cannot be used with --format ${format}. Expected a format of JSON`)
  }
  const isKeyGiven = command.getOptionValueSource('key') !== 'default'
  if (options.keyField !== undefined && !isKeyGiven) options.key = parseKey('user')
}

async function runReplay(file: string, options: ReplayOptions, environment: Environment): Promise<number> {
  const { key, compare = [], top, json, timeField, keyField } = options
  const format = options.format === 'auto' ? undefined : options.format
  const { stdin, stdout, stderr } = environment
  const rules = rulesOf(options)
  const toCompare = compare.map((algorithm) => ({ algorithm, rules: comparedRules(algorithm, options) }))
  const progress = new Progress(stderr)
  let read: Awaited<ReturnType<typeof readTraffic>>
  let replayed: Replay
  let others: Compared[]
  try {
    read = await readTraffic(file, { key, format, timeField, keyField }, stdin, progress)
    const { length } = read.traffic.atMs
    const showing = (what: string) => (done: number) => {
      progress.show(() => `${what}: ${grouped(done)} of ${grouped(length)} requests`)
    }
    const { traffic } = read
    replayed = replay(traffic, rules, showing('replaying'))
    others = toCompare.map(({ algorithm, rules }) => {
      if (algorithm === options.algorithm) return { algorithm, ...replayed.admissions }
      return comparedWith(algorithm, traffic, rules, showing(algorithm))
    })
  } catch (error) {
    if ((error as MillraceError).code !== 'ERR_MILLRACE_ARENA_TOO_LARGE') throw error
    throw new UsageError('granularity: too fine for this many clients; choose a coarser one', {
      cause: error,
    })
  } finally {
    progress.done()
  }
  const { traffic, unparsed, withoutUser, others: withoutRequest } = read
  const formatRead = { format: read.format ?? null, formatGuessed: format === undefined, withoutRequest }
  const compared = others.length === 0 ? {} : { compared: others }
  if (json) {
    const all = figuresOf(replayed, {
      ...compared,
      unparsed: unparsed.count,
      key: key.name,
      withoutUser,
      ...formatRead,
      top,
    })
    stdout.write(`${inertJson(all, 2)}\n`)
  } else {
    const width = Math.max(NARROWEST, widthOf(stdout))
    const chart = Math.min(width, WIDEST_CHART)
    const usersMissing = key.needsUser ? withoutUser : 0
    const results = {
      ...{ replay: replayed, unparsed, key: key.name, usersMissing, ...formatRead, ...compared },
      ...(width < NARROWEST_CHART
        ? {}
        : { timeline: timeline(traffic, replayed.admitted, chart - CHART_MARGIN) }),
    }
    stdout.write(report(results, { top, width, colour: hasColour(stdout) }))
  }
  return violatesGuarantee(replayed) ? 1 : 0
}
