import { readFileSync } from 'node:fs'
import { Command, CommanderError, Help } from 'commander'
import { MillraceError } from 'millrace'
import { meantBy } from 'millrace/internal'
import { configCommand } from './config/command.js'
import { demoCommand } from './demo/command.js'
import { replayCommand } from './replay/command.js'
import { serveCommand } from './serve/command.js'
import {
  type Environment,
  FailedOperation,
  helpParagraph,
  inertMessage,
  MissingPackage,
  UsageError,
  widthOf,
  wrapped,
} from './terminal.js'

const FAILED = 1
const USAGE = 2
const MISSING_PACKAGE = 5
const NARROW = 70
const EXIT_CODES =
  'Exit codes: 0 success; 1 the limiter broke a guarantee, a demo did not reach its limit, or an operation failed; 2 wrong arguments, or an input or ' +
  'port that cannot be used; of serve also 3 to 5: see millrace serve --help.'

/** Runs a command line and resolves to its exit code, as {@link EXIT_CODES} describes. */
export async function run(args: string[], environment: Environment): Promise<number> {
  const { stdout, stderr } = environment
  let exitCode = 0
  const program = new Command('millrace')
    .description(
      'A sliding-window rate limiter for Node.js. Test a limit under load, replay an access log against one, or change ' +
        'the limits of keys in a store.',
    )
    .version(version(), '-V, --version', 'show the version')
    .helpOption('-h, --help', 'show this help')
    .helpCommand('help [command]', 'show the help of a command')
    .addHelpText('afterAll', () => helpParagraph(EXIT_CODES, stdout))
    .exitOverride()
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      getOutHelpWidth: () => widthOf(stdout),
      getErrHelpWidth: () => widthOf(stderr),
      outputError: () => {}, // the catch below prints the error, with a hint
    })
  program.configureHelp({
    // On a narrow terminal the description of an option goes on the lines below it.
    formatItem(term, termWidth, description, helper) {
      const width = helper.helpWidth ?? 80
      if (width >= NARROW || description === '')
        return Help.prototype.formatItem.call(helper, term, termWidth, description, helper)
      return [`  ${term}`, ...wrapped(`    ${description}`, width)].join('\n')
    },
  })
  for (const add of [demoCommand, replayCommand, configCommand, serveCommand]) {
    add(program, environment, (code) => {
      exitCode = code
    })
  }
  // A closed pipe, as by `| head`, is not an error.
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
    // `help NAME` for an unknown command fails like the unknown command.
    const isHelpForUnknown =
      args[0] === 'help' && args.length > 1 && commandOf(args.slice(1), program) === undefined
    await program.parseAsync(isHelpForUnknown ? args.slice(1) : args, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0 // help or version, which commander has printed
    if (error instanceof CommanderError && error.code === 'commander.help') return USAGE // without a subcommand
    if (error instanceof CommanderError)
      stderr.write(`millrace: ${inertMessage(usageMessage(error, args, program))}\n`)
    else if (error instanceof UsageError || error instanceof MillraceError)
      stderr.write(`millrace: ${inertMessage(error.message)}\n`)
    else if (error instanceof FailedOperation) {
      stderr.write(`millrace: ${inertMessage(error.message)}\n`)
      return FAILED
    } else if (error instanceof MissingPackage) {
      stderr.write(`millrace: ${inertMessage(error.message)}\n`)
      return MISSING_PACKAGE
    } else throw error
    return USAGE
  }
}

/** One line with the error and a hint where to find the usage. */
function usageMessage(error: CommanderError, args: string[], program: Command): string {
  const command = commandOf(args, program)
  let message = error.message
    .replace(/^error: /, '')
    .trimEnd()
    .replaceAll('\n', ' ')
  if (error.code === 'commander.missingArgument') {
    const missing = command?.registeredArguments.find((argument) => message.includes(`'${argument.name()}'`))
    if (missing) message = `missing <${missing.name()}>: ${missing.description}`
  }
  if (error.code === 'commander.unknownOption' && !message.includes('Did you mean')) {
    const [, given] = /'--(.*)'/.exec(message) ?? []
    const options = command?.options ?? []
    const meant = meantBy(
      given ?? '',
      options.map((option) => option.attributeName()),
    )
    const long = options.find((option) => option.attributeName() === meant)?.long
    if (given !== undefined && long) message = `${message} (Did you mean ${long}?)`
  }
  return `${message.replace(/\.$/, '')} (see: millrace ${command ? helpOf(command) : '--help'})`
}

/** The arguments that show the help of a command: `help replay`, `config help get`. */
function helpOf(command: Command): string {
  const group = command.parent?.parent ? `${command.parent.name()} ` : ''
  return `${group}help ${command.name()}`
}

/** The command, or the subcommand of one, that the arguments name. */
function commandOf(args: string[], program: Command): Command | undefined {
  let found: Command | undefined
  for (const name of args.filter((arg) => !arg.startsWith('-'))) {
    const next = (found ?? program).commands.find((command) => command.name() === name)
    if (next === undefined) break
    found = next
  }
  return found
}

function version(): string {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version
}
