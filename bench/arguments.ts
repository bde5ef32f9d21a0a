import { Command, InvalidArgumentError, Option } from 'commander'
import { ALL_CASES, CASES, type CaseName } from './cases/index.js'

interface CommonArguments {
  readonly quick: boolean
  readonly json: boolean
}

/** The cases of `npm run bench:http`. */
export const HTTP_CASES = ['http', 'in-situ'] as const

export interface HttpArguments extends CommonArguments {
  readonly case: (typeof HTTP_CASES)[number]
}

export interface Arguments extends CommonArguments {
  readonly cases: readonly CaseName[]
  /** Whether to write docs/measurements/performance.md. */
  readonly report: boolean
}

type Write = (text: string) => void

/** Reads the command line. @throws CommanderError for `--help` (exit code 0) and for invalid arguments */
export function parseArguments(argv: readonly string[], write: Write = writeError): Arguments {
  const names = Object.keys(CASES) as (keyof typeof CASES)[]
  const command = commandNamed('npm run bench --', write)
    .description(
      'Compares Millrace with other limiters, each in a fresh process, and checks the speed targets.',
    )
    .addOption(
      new Option('--case <name>', `run only this case; repeat the option for more (${names.join(', ')})`)
        .argParser(collectCase)
        .default([], 'all cases'),
    )
    .addOption(
      // A page of a few cases would look like the complete page.
      new Option(
        '--report',
        'write docs/measurements/performance.md and its chart from a run of all cases and of bench:http',
      ).conflicts('case'),
    )
  const options = command
    .parse(argv, { from: 'user' })
    .opts<{ case: CaseName[]; quick?: boolean; json?: boolean; report?: boolean }>()
  const { case: cases, quick = false, json = false, report = false } = options
  const all = report ? (Object.keys(ALL_CASES) as CaseName[]) : names
  return { cases: cases.length > 0 ? cases : all, quick, json, report }
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
        .choices(HTTP_CASES)
        .default(HTTP_CASES[0]),
    )
    .parse(argv, { from: 'user' })
    .opts<{ case: HttpArguments['case']; quick?: boolean; json?: boolean }>()
  const { case: name, quick = false, json = false } = options
  return { case: name, quick, json }
}

function commandNamed(name: string, write: Write): Command {
  return new Command(name)
    .option('--quick', 'fewer decisions and rounds: a trial run, not figures to quote')
    .option('--json', 'print the figures as JSON on stdout (use `npm run --silent`)')
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeErr: write, writeOut: (text) => process.stdout.write(text) })
}

function collectCase(name: string, previous: CaseName[]): CaseName[] {
  if (!Object.hasOwn(CASES, name)) {
    throw new InvalidArgumentError(`No such case. The cases are ${Object.keys(CASES).join(', ')}.`)
  }
  return previous.includes(name as CaseName) ? previous : [...previous, name as CaseName]
}

function writeError(text: string): void {
  process.stderr.write(text)
}
