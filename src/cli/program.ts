import { readFileSync } from 'node:fs'
import { Command, CommanderError, Help } from 'commander'
import { MillraceError } from '../core/errors.js'
import { ownFile } from '../core/own-file.js'
import { replayCommand } from './replay/command.js'
import { type Surroundings, UsageError, widthOf, wrapped } from './terminal.js'

const USAGE = 2
const NARROW = 70

/** Runs one command line. Resolves to the exit code: 0 done, 1 a promise was broken, 2 it could not be done as asked. */
export async function run(args: string[], surroundings: Surroundings): Promise<number> {
  const { stdout, stderr } = surroundings
  let exitCode = 0
  const program = new Command('millrace')
    .description('A sliding-window rate limiter for Node.js: see what a limit would have done.')
    .version(version(), '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand('help [command]', 'show the help of a command')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      getOutHelpWidth: () => widthOf(stdout),
      getErrHelpWidth: () => widthOf(stderr),
      // On one line, as every other mistake.
      outputError: (text, write) =>
        write(
          `${text
            .replace(/^error: /, 'millrace: ')
            .trimEnd()
            .replaceAll('\n', ' ')}\n`,
        ),
    })
  program.configureHelp({
    // Two columns need room: in less, what an option means goes below it.
    formatItem(term, termWidth, description, helper) {
      const width = helper.helpWidth ?? 80
      if (width >= NARROW || description === '')
        return Help.prototype.formatItem.call(helper, term, termWidth, description, helper)
      return [`  ${term}`, ...wrapped(`    ${description}`, width)].join('\n')
    },
  })
  replayCommand(program, surroundings, (code) => {
    exitCode = code
  })
  // A reader that has seen enough (`| head`) is no error: there is nobody left to tell.
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    stderr.write(`millrace: standard output: ${error.message}\n`)
    process.exit(USAGE)
  })
  try {
    if (args.length === 0) {
      stderr.write(program.helpInformation())
      return USAGE
    }
    await program.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE // commander has said it
    if (!(error instanceof UsageError || error instanceof MillraceError)) throw error
    stderr.write(`millrace: ${error.message}\n`)
    return USAGE
  }
}

function version(): string {
  return JSON.parse(readFileSync(ownFile('package.json'), 'utf8')).version
}
