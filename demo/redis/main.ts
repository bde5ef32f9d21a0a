/**
 * `npm run demo:redis`: four processes with one limit on a Redis that the demo starts, and proof that it holds. Exit
 * codes: 1 if a promise was broken or redis-server is missing, 2 for invalid arguments.
 */
import { CommanderError } from 'commander'
import { hasColour, Progress, widthOf } from 'millrace-cli/dist/terminal.js'
import { isInstalled, missing } from '../../test/redis/programs.js'
import { parseArguments } from './arguments.js'
import { runDemo } from './demo.js'
import { report } from './report.js'

const NARROWEST = 60

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof CommanderError)) throw error
  process.exitCode = error.exitCode === 0 ? 0 : 2
}

async function main(argv: readonly string[]): Promise<number> {
  const options = parseArguments(argv)
  const { stdout, stderr } = process
  if (!isInstalled('redis-server')) {
    stderr.write(
      `The demo starts a Redis of its own, and ${missing('redis-server')}; with Homebrew: brew install redis.\n`,
    )
    return 1
  }
  const progress = new Progress(stderr)
  const result = await runDemo(options, (kind, secondsLeft) =>
    progress.show(() => `${secondsLeft.toFixed(0).padStart(3)} s left, ${kind}`),
  )
  progress.done()
  if (options.json) stdout.write(`${JSON.stringify(result, undefined, 2)}\n`)
  else stdout.write(report(result, Math.max(NARROWEST, widthOf(stdout)), hasColour(stdout)))
  return result.held ? 0 : 1
}
