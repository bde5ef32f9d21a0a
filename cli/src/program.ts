import { readFileSync } from 'node:fs'
import { Command, CommanderError, Help } from 'commander'
import { MillraceError } from 'millrace'
import { demoCommand } from './demo/command.js'
import { replayCommand } from './replay/command.js'
import { type Surroundings, UsageError, widthOf, wrapped } from './terminal.js'

const USAGE = 2
const NARROW = 70
const EXIT_CODES =
  'Exit codes: 0 done; 1 a promise of the limiter was broken; 2 it could not be done as asked.'

/** Runs one command line. Resolves to the exit code: 0 done, 1 a promise was broken, 2 it could not be done as asked. */
export async function run(args: string[], surroundings: Surroundings): Promise<number> {
  const { stdout, stderr } = surroundings
  let exitCode = 0
  const program = new Command('millrace')
    .description('A sliding-window rate limiter for Node.js: see a limit hold, or what one would have done.')
    .version(version(), '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand('help [command]', 'show the help of a command')
    .addHelpText('afterAll', () => ['', ...wrapped(EXIT_CODES, widthOf(stdout))].join('\n'))
    .exitOverride()
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      getOutHelpWidth: () => widthOf(stdout),
      getErrHelpWidth: () => widthOf(stderr),
      outputError: () => {}, // told below, with what to do next
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
  for (const add of [demoCommand, replayCommand]) {
    add(program, surroundings, (code) => {
      exitCode = code
    })
  }
  // A reader that has seen enough (`| head`) is no error: there is nobody left to tell.
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    stderr.write(`millrace: standard output: ${error.message}\n`)
    process.exit(USAGE)
  })
  try {
    if (args.length === 0) {
      program.outputHelp({ error: true })
      return USAGE
    }
    // Help for what is no command is answered as the command itself would be.
    const isHelpForNone =
      args[0] === 'help' && args.length > 1 && commandOf(args.slice(1), program) === undefined
    await program.parseAsync(isHelpForNone ? args.slice(1) : args, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0 // help or version, which it has written
    if (error instanceof CommanderError) stderr.write(`millrace: ${mistake(error, args, program)}\n`)
    else if (error instanceof UsageError || error instanceof MillraceError)
      stderr.write(`millrace: ${error.message}\n`)
    else throw error
    return USAGE
  }
}

/** On one line, as every mistake: what is wrong, and where it is told how it is done. */
function mistake(error: CommanderError, args: string[], program: Command): string {
  const command = commandOf(args, program)
  let wrong = error.message
    .replace(/^error: /, '')
    .trimEnd()
    .replaceAll('\n', ' ')
  if (error.code === 'commander.missingArgument') {
    const missing = command?.registeredArguments.find((argument) => wrong.includes(`'${argument.name()}'`))
    if (missing) wrong = `missing <${missing.name()}>: ${missing.description}`
  }
  return `${wrong.replace(/\.$/, '')} (see: millrace ${command ? `help ${command.name()}` : '--help'})`
}

function commandOf(args: string[], program: Command): Command | undefined {
  const name = args.find((arg) => !arg.startsWith('-'))
  return program.commands.find((command) => command.name() === name)
}

function version(): string {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version
}
