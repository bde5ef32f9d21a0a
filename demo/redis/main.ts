/**
 * `npm run demo:redis`: four processes with one limit on a Redis that the demo starts, and proof that it holds. Exit
 * codes: 1 if a promise was broken or redis-server is missing, 2 for invalid arguments.
 */
import { Command, CommanderError, InvalidArgumentError } from 'commander'
import { hasColour, Progress, widthOf } from 'millrace-cli/dist/terminal.js'
import { isInstalled, missing } from '../../test/redis/programs.js'
import { type DemoOptions, LOADS, runDemo } from './demo.js'
import { report } from './report.js'

const NARROWEST = 60

process.exitCode = await main(process.argv.slice(2))

async function main(argv: readonly string[]): Promise<number> {
  const options = optionsOf(argv)
  if (typeof options === 'number') return options
  if (!isInstalled('redis-server')) {
    process.stderr.write(`The demo starts a Redis of its own, and ${missing('redis-server')}.\n`)
    return 1
  }
  const progress = new Progress(process.stderr)
  const result = await runDemo(options, (kind, secondsLeft) =>
    progress.show(() => `${secondsLeft.toFixed(0).padStart(3)} s left, ${kind}`),
  )
  progress.done()
  const { stdout } = process
  if (options.json) stdout.write(`${JSON.stringify(result, undefined, 2)}\n`)
  else stdout.write(report(result, Math.max(NARROWEST, widthOf(stdout)), hasColour(stdout)))
  return result.held ? 0 : 1
}

/** The options, or the exit code after help and errors. */
function optionsOf(argv: readonly string[]): (DemoOptions & { json?: true }) | number {
  const command = new Command('npm run demo:redis --')
    .description(
      'Four processes with one limit on a Redis that this command starts: under load, then with Redis stopped in the middle.',
    )
    .option('-s, --seconds <count>', 'seconds of load in total; at least 4', from(4, 3_600), 12)
    .option('-r, --requests-per-second <count>', 'of all processes together', from(8, 20_000), 2_000)
    .option('-l, --limit <units>', 'requests in any second, of all together', from(LOADS.length, 10_000), 500)
    .option('--json', 'print the results as JSON')
    .allowExcessArguments(false)
    .exitOverride()
  try {
    return command.parse(argv, { from: 'user' }).opts()
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    throw error
  }
}

function from(least: number, most: number) {
  return (text: string): number => {
    const number = Number(text)
    if (!/^\d+$/.test(text) || number < least || number > most)
      throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`)
    return number
  }
}
