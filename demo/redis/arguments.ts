import { Command, InvalidArgumentError } from 'commander'
import { type DemoOptions, LOADS } from './demo.js'

export type Arguments = DemoOptions & { readonly json?: true }

/** Reads the command line. @throws CommanderError for `--help` (exit code 0) and for invalid arguments */
export function parseArguments(
  argv: readonly string[],
  write = (text: string): unknown => process.stderr.write(text),
): Arguments {
  return new Command('npm run demo:redis --')
    .description(
      'Four processes with one limit on a Redis that this command starts: under load, then with Redis stopped in the middle.',
    )
    .option('-s, --seconds <count>', 'seconds of load in total; at least 4', from(4, 3_600), 12)
    .option('-r, --requests-per-second <count>', 'of all processes together', from(8, 20_000), 2_000)
    .option('-l, --limit <units>', 'requests in any second, of all together', from(LOADS.length, 10_000), 500)
    .option('--json', 'print the results as JSON')
    .allowExcessArguments(false)
    .exitOverride()
    .configureOutput({ writeErr: write })
    .parse(argv, { from: 'user' })
    .opts()
}

function from(least: number, most: number) {
  return (text: string): number => {
    const number = Number(text)
    if (!/^\d+$/.test(text) || number < least || number > most)
      throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`)
    return number
  }
}
