import { Command, InvalidArgumentError, Option } from 'commander'
import {
  CASES,
  type CaseName,
  CONFIG_CASES,
  HTTP_CASES,
  INSTRUCTIONS_CASES,
  REDIS_CASES,
  SERVICE_CASES,
} from './cases/index.js'

interface CommonArguments {
  readonly quick: boolean
  readonly json: boolean
}

/** What of a page is written: all of it, the cases that are named, or nothing. */
export type ReportScope = 'all' | 'cases' | undefined

export interface HttpArguments extends CommonArguments {
  readonly case: keyof typeof HTTP_CASES
}

export interface InstructionsArguments extends CommonArguments {
  readonly cases: readonly (keyof typeof INSTRUCTIONS_CASES)[]
  /** Whether to write the page of instructions. */
  readonly report: ReportScope
}

export interface RedisArguments extends CommonArguments {
  readonly cases: readonly (keyof typeof REDIS_CASES)[]
}

export interface ConfigArguments extends CommonArguments {
  readonly cases: readonly (keyof typeof CONFIG_CASES)[]
  readonly policies?: number
}

export interface ServiceArguments extends CommonArguments {
  readonly cases: readonly (keyof typeof SERVICE_CASES)[]
  /** Whether to write the page of the service. */
  readonly report: ReportScope
}

export interface Arguments extends CommonArguments {
  readonly cases: readonly CaseName[]
  /** Whether to write docs/measurements/performance.md. */
  readonly report: ReportScope
}

type Write = (text: string) => void

/** Reads the command line. @throws CommanderError for `--help` (exit code 0) and for invalid arguments */
export function parseArguments(argv: readonly string[], write: Write = writeError): Arguments {
  const names = namesOf(CASES)
  const command = commandNamed('npm run bench --', write)
    .description(
      'Compares Millrace with other limiters, each in a fresh process, and checks the speed targets.',
    )
    .addOption(caseOption(names))
    .addOption(
      reportOption(
        'write docs/measurements/performance.md and its chart from a run of all cases and of bench:http',
      ),
    )
  const options = command
    .parse(argv, { from: 'user' })
    .opts<{ case: CaseName[]; quick?: boolean; json?: boolean; report?: boolean }>()
  const { case: cases, quick = false, json = false, report = false } = options
  const all = report ? [...names, ...namesOf(HTTP_CASES)] : names
  return { cases: cases.length > 0 ? cases : all, quick, json, report: scopeOf(report, cases) }
}

/** Like {@link parseArguments}, for the command `bench:http`, which runs one case. */
export function parseHttpArguments(argv: readonly string[], write: Write = writeError): HttpArguments {
  const options = commandNamed('npm run bench:http --', write)
    .description(
      'Loads a node:http server without a limiter, with constant RateLimit headers, and with Millrace by one rule, by two, and pooled.',
    )
    .addOption(
      new Option(
        '--case <name>',
        'http, or in-situ: what a limiter adds to a request, in node:http, Express and Fastify',
      )
        .choices(namesOf(HTTP_CASES))
        .default('http'),
    )
    .parse(argv, { from: 'user' })
    .opts<{ case: HttpArguments['case']; quick?: boolean; json?: boolean }>()
  const { case: name, quick = false, json = false } = options
  return { case: name, quick, json }
}

/** Like {@link parseArguments}, for the command `bench:redis`. */
export function parseRedisArguments(argv: readonly string[], write: Write = writeError): RedisArguments {
  const names = namesOf(REDIS_CASES)
  const options = commandNamed('npm run bench:redis --', write)
    .description(
      'Measures limiters on Redis: the server, its memory, the client, outages, and limiters built by hand.',
    )
    .addOption(caseOption(names))
    .parse(argv, { from: 'user' })
    .opts<{ case: RedisArguments['cases']; quick?: boolean; json?: boolean }>()
  const { case: cases, quick = false, json = false } = options
  return { cases: cases.length > 0 ? cases : names, quick, json }
}

/** Like {@link parseArguments}, for the command `bench:instructions`. */
export function parseInstructionsArguments(
  argv: readonly string[],
  write: Write = writeError,
): InstructionsArguments {
  const names = namesOf(INSTRUCTIONS_CASES)
  const options = commandNamed('npm run bench:instructions --', write)
    .description(
      'Counts the instructions and the cache misses of servers for a request, under cachegrind: a Map by hand, each peer, and Millrace.',
    )
    .addOption(caseOption(names))
    .addOption(reportOption('write the page instructions.md of docs/measurements/, from a run of all cases'))
    .parse(argv, { from: 'user' })
    .opts<{ case: InstructionsArguments['cases']; quick?: boolean; json?: boolean; report?: boolean }>()
  const { case: cases, quick = false, json = false, report = false } = options
  return { cases: cases.length > 0 ? cases : names, quick, json, report: scopeOf(report, cases) }
}

/** Like {@link parseArguments}, for the command `bench:config`. */
export function parseConfigArguments(argv: readonly string[], write: Write = writeError): ConfigArguments {
  const names = namesOf(CONFIG_CASES)
  const {
    case: cases,
    policies,
    ...flags
  } = commandNamed('npm run bench:config --', write)
    .description(
      'Measures configuration stores: look-ups, millions of policies in LMDB, and limiters that take their rules from them.',
    )
    .addOption(caseOption(names))
    .addOption(
      new Option('--policies <count>', 'policies of lmdb-policies (default: 10,000,000)').argParser(toCount),
    )
    .parse(argv, { from: 'user' })
    .opts<{ case: ConfigArguments['cases']; policies?: number; quick?: boolean; json?: boolean }>()
  const { quick = false, json = false } = flags
  return { cases: cases.length > 0 ? cases : names, quick, json, ...(policies !== undefined && { policies }) }
}

/** Like {@link parseArguments}, for the command `bench:service`. */
export function parseServiceArguments(argv: readonly string[], write: Write = writeError): ServiceArguments {
  const names = namesOf(SERVICE_CASES)
  const options = commandNamed('npm run bench:service --', write)
    .description(
      'Compares an engine of the decision service with a bare Fastify route, its client with single requests, and counts its memory.',
    )
    .addOption(caseOption(names))
    .addOption(reportOption('write the page service.md of docs/measurements/, from a run of all cases'))
    .parse(argv, { from: 'user' })
    .opts<{ case: ServiceArguments['cases']; quick?: boolean; json?: boolean; report?: boolean }>()
  const { case: cases, quick = false, json = false, report = false } = options
  return { cases: cases.length > 0 ? cases : names, quick, json, report: scopeOf(report, cases) }
}

function toCount(text: string): number {
  const count = Number(text.replaceAll(/[_,]/g, ''))
  if (Number.isInteger(count) && count >= 1_000 && count <= 1e8) return count
  throw new InvalidArgumentError('An integer from 1,000 to 100,000,000.')
}

const namesOf = <Name extends string>(cases: Readonly<Record<Name, unknown>>): Name[] =>
  Object.keys(cases) as Name[]

/** The option `--case`, which may be repeated. */
function caseOption(names: readonly string[]): Option {
  return new Option('--case <name>', `run only this case; repeat the option for more (${names.join(', ')})`)
    .argParser((name: string, previous: string[]) => collectCase(names, name, previous))
    .default([], 'all cases')
}

const reportOption = (what: string): Option =>
  new Option('--report', `${what}; with --case, the sections and targets of these cases, and the others stay`)

const scopeOf = (report: boolean, cases: readonly string[]): ReportScope =>
  report ? (cases.length > 0 ? 'cases' : 'all') : undefined

function commandNamed(name: string, write: Write): Command {
  return new Command(name)
    .option('--quick', 'fewer decisions and rounds: a trial run, not figures to quote')
    .option('--json', 'print the figures as JSON on stdout (use `npm run --silent`)')
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeErr: write, writeOut: (text) => process.stdout.write(text) })
}

function collectCase(names: readonly string[], name: string, previous: string[]): string[] {
  if (!names.includes(name)) {
    throw new InvalidArgumentError(`No such case. The cases are ${names.join(', ')}.`)
  }
  return previous.includes(name) ? previous : [...previous, name]
}

function writeError(text: string): void {
  process.stderr.write(text)
}
