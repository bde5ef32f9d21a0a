import { loadService } from '../serve/command.js'
import { inertMessage, print, UsageError } from '../terminal.js'
import type { AddCommand } from './options.js'

interface Entry {
  readonly key: string
  readonly value: string
}

/** What the command uses of the package millrace-service, which reads the files. */
interface Explain {
  readonly OptionError: new () => Error
  entriesIn(text: string): Entry[] | undefined
  explain(
    paths: readonly string[],
    domain: string | undefined,
    descriptors: readonly (readonly Entry[])[],
  ): string[]
}

interface CheckOptions {
  readonly descriptor: readonly string[]
  readonly domain?: string
}

/** `millrace config check`: which limits of the files for Envoy a request meets, and why. */
export const checkCommand: AddCommand = (config, { stdout }) => {
  config
    .command('check')
    .summary('show which limit of the files for Envoy a request meets, and why')
    .description(
      'Reads files of limits as millrace serve --envoy-config does, and shows for each descriptor which rule it meets. ' +
        'Example: millrace config check limits.yaml --descriptor message_type=marketing,to_number=206',
    )
    .argument('<file...>', 'files, or directories with *.yaml')
    .requiredOption(
      '--descriptor <key=value,...>',
      'the entries of a descriptor, in their order; several times for several descriptors. A comma in a value is \\,',
      (text: string, before: readonly string[] = []) => [...before, text],
    )
    .option('--domain <name>', 'the domain of the request, if the files have several')
    .action(async (files: string[], { descriptor, domain }: CheckOptions) => {
      const { entriesIn, explain, OptionError } = await loadService<Explain>('config check', 'explain')
      const descriptors = descriptor.map((text) => entriesIn(text) ?? notEntries(text))
      try {
        const lines = explain(files, domain, descriptors)
        await print(stdout, lines.map((line) => `${inertMessage(line)}\n`).join(''))
      } catch (error) {
        if (!(error instanceof OptionError)) throw error
        throw new UsageError(error.message, { cause: error })
      }
    })
}

function notEntries(text: string): never {
  throw new UsageError(`--descriptor: expected key=value,key=value, got ${JSON.stringify(text)}`)
}
