// `millrace serve`.
import { MillraceError } from 'millrace'
import { OptionError } from './options/option.js'
import { type Arguments, readArguments, readOptions } from './options/read.js'
import { optionsHelp, printedConfig } from './options/show.js'
import { watchFiles } from './reload.js'
import { tlsFilesOf } from './security/tls.js'
import type { Served } from './serve.js'
import { StoreError } from './stores/start.js'

/** The streams of the process that the command uses. */
export interface Environment {
  readonly stdout: NodeJS.WritableStream
  readonly stderr: NodeJS.WritableStream
}

/** The exit codes. `docs/service.md` has them too. */
const ENDED = 0
const WRONG_OPTIONS = 2
const NO_ADDRESS = 3
const NO_STORE = 4
const MISSING_PACKAGE = 5

const HELP_BEFORE = `Usage: millrace serve [options]

Answers decisions over HTTP. Example: millrace serve --limit 100/1m

Every option is also a field of the file that --config names, and a variable: --max-keys is maxKeys, and
MILLRACE_SERVE_MAX_KEYS. An option that has two values is an error.

Options:
  --config <path>
      A YAML or JSON file with options. It may be MILLRACE_SERVE_CONFIG.
  --print-config
      Show all options and where each is from, and end. Secrets are hidden.
`
const HELP_AFTER = `
Exit codes: 0 it was ended by SIGTERM or SIGINT; 2 wrong options; 3 the address can't be listened on;
4 a store refuses, or does not answer; 5 a package is missing.
`

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** Runs until SIGTERM or SIGINT. Resolves to the exit code. */
export async function run(args: readonly string[], { stdout, stderr }: Environment): Promise<number> {
  try {
    const given = readArguments(args)
    if (given.help) {
      stdout.write(`${HELP_BEFORE}${optionsHelp()}\n${HELP_AFTER}`)
      return ENDED
    }
    if (given.printConfig) {
      stdout.write(printedConfig(readOptions(given, process.env)))
      return ENDED
    }
    await serveUntilSignal(given, stdout, stderr)
    return ENDED
  } catch (error) {
    const code = exitCodeOf(error)
    if (code === undefined) throw error
    stderr.write(`millrace: serve: ${(error as Error).message.replaceAll('\n', ' ')}\n`)
    return code
  }
}

async function serveUntilSignal(
  given: Arguments,
  stdout: NodeJS.WritableStream,
  stderr: NodeJS.WritableStream,
): Promise<void> {
  let end!: () => void
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  for (const name of SIGNALS) process.once(name, end)
  try {
    await serveUntil(ended, given, stdout, stderr)
  } finally {
    for (const name of SIGNALS) process.off(name, end)
  }
}

async function serveUntil(
  ended: Promise<void>,
  given: Arguments,
  stdout: NodeJS.WritableStream,
  stderr: NodeJS.WritableStream,
): Promise<void> {
  const { files, settings } = readOptions(given, process.env)
  const { start } = await import('./serve.js') // after the options: most of the time of a start is its loading
  const served: Served = await start(() => readOptions(given, process.env))
  const reload = () => {
    try {
      served.reload()
    } catch (error) {
      stderr.write(`millrace: serve: the secrets stay as they were: ${(error as Error).message}\n`)
    }
  }
  process.on('SIGHUP', reload)
  const endWatch = watchFiles([...files, ...tlsFilesOf(settings)], reload)
  if (served.grpcAddress !== undefined) stdout.write(`answering Envoy by gRPC on ${served.grpcAddress}\n`)
  stdout.write(`listening on ${served.url}\n`)
  await ended
  endWatch()
  process.off('SIGHUP', reload)
  await served.close()
}

const ADDRESS_ERRORS = ['EADDRINUSE', 'EADDRNOTAVAIL', 'EACCES', 'ENOTFOUND']
const MISSING = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ERR_MILLRACE_MISSING_PEER']

/** The exit code of an error that the user can do something about. */
function exitCodeOf(error: unknown): number | undefined {
  const { code = '', syscall } = error as NodeJS.ErrnoException
  if (error instanceof OptionError) return WRONG_OPTIONS
  if (ADDRESS_ERRORS.includes(code) && (syscall === 'listen' || syscall === 'getaddrinfo')) return NO_ADDRESS
  if (MISSING.includes(code)) return MISSING_PACKAGE
  if (error instanceof StoreError || error instanceof MillraceError || syscall !== undefined) return NO_STORE
  return undefined
}
