import { Command, InvalidArgumentError, Option } from 'commander'
import { CASES, type CaseName } from './cases/index.js'

export interface Arguments {
  readonly cases: readonly CaseName[]
  readonly quick: boolean
  readonly json: boolean
}

/** Reads the command line. @throws CommanderError for `--help` (exit code 0) and for what is not understood */
export function parseArguments(
  argv: readonly string[],
  write: (text: string) => void = writeError,
): Arguments {
  const names = Object.keys(CASES)
  const command = new Command('npm run bench --')
    .description(
      'Times Millrace beside its peers, each contender in a fresh process, and judges the targets.',
    )
    .addOption(
      new Option('--case <name>', `only this case; may be given more than once (${names.join(', ')})`)
        .argParser(collectCase)
        .default([], 'all cases'),
    )
    .option('--quick', 'fewer decisions and rounds: to see that it runs, not to quote')
    .option('--json', 'print the figures as JSON on stdout (with `npm run --silent`)')
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeErr: write, writeOut: (text) => process.stdout.write(text) })
  command.parse(argv, { from: 'user' })
  const {
    case: cases,
    quick = false,
    json = false,
  } = command.opts<{ case: CaseName[]; quick?: boolean; json?: boolean }>()
  return { cases: cases.length > 0 ? cases : (names as CaseName[]), quick, json }
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
