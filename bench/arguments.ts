import { Command, InvalidArgumentError, Option } from 'commander'
import { CASES, type CaseName } from './cases/index.js'

export interface HttpArguments {
  readonly quick: boolean
  readonly json: boolean
}

export interface Arguments extends HttpArguments {
  readonly cases: readonly CaseName[]
  /** Whether docs/performance.md is to be written. */
  readonly report: boolean
}

type Write = (text: string) => void

/** Reads the command line. @throws CommanderError for `--help` (exit code 0) and for what is not understood */
export function parseArguments(argv: readonly string[], write: Write = writeError): Arguments {
  const names = Object.keys(CASES) as (keyof typeof CASES)[]
  const command = commandNamed('npm run bench --', write)
    .description(
      'Times Millrace beside its peers, each contender in a fresh process, and judges the targets.',
    )
    .addOption(
      new Option('--case <name>', `only this case; may be given more than once (${names.join(', ')})`)
        .argParser(collectCase)
        .default([], 'all cases'),
    )
    .addOption(
      // A page of some cases would look like one of all.
      new Option('--report', 'write docs/performance.md and its chart, of all cases').conflicts('case'),
    )
  const options = command
    .parse(argv, { from: 'user' })
    .opts<{ case: CaseName[]; quick?: boolean; json?: boolean; report?: boolean }>()
  const { case: cases, quick = false, json = false, report = false } = options
  return { cases: cases.length > 0 ? cases : names, quick, json, report }
}

/** As {@link parseArguments}, for the command that has one case. */
export function parseHttpArguments(argv: readonly string[], write: Write = writeError): HttpArguments {
  const { quick = false, json = false } = commandNamed('npm run bench:http --', write)
    .description(
      'Loads an HTTP server: bare, with constant RateLimit headers, with the limiter behind them, inline and by a pool.',
    )
    .parse(argv, { from: 'user' })
    .opts<{ quick?: boolean; json?: boolean }>()
  return { quick, json }
}

function commandNamed(name: string, write: Write): Command {
  return new Command(name)
    .option('--quick', 'fewer decisions and rounds: to see that it runs, not to quote')
    .option('--json', 'print the figures as JSON on stdout (with `npm run --silent`)')
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeErr: write, writeOut: (text) => process.stdout.write(text) })
}

function collectCase(name: string, previous: CaseName[]): CaseName[] {
  if (!Object.hasOwn(CASES, name)) {
    throw new InvalidArgumentError(`There is no such case; the cases are ${Object.keys(CASES).join(', ')}.`)
  }
  return previous.includes(name as CaseName) ? previous : [...previous, name as CaseName]
}

function writeError(text: string): void {
  process.stderr.write(text)
}
