import { checkedPolicies, shownUrl } from 'millrace/internal'
import {
  type Environment,
  FailedOperation,
  grouped,
  inertJson,
  inertMessage,
  Progress,
  print,
  printable,
  widthOf,
} from '../terminal.js'
import { checkFile } from './checked-file.js'
import { errorsIn } from './import.js'
import { INTERRUPTED, interruptible } from './interrupt.js'
import { lineOf } from './list.js'
import { atStore, withStore } from './open-store.js'
import { type AddCommand, jsonOption, type StoreOptions, storeIn, storeOption } from './options.js'
import { pagesOf } from './pages.js'
import { withPolicyFile } from './policy-file.js'
import { faultOf } from './policy-table.js'
import { barLine } from './progress-bar.js'

interface ValidateOptions extends StoreOptions {
  readonly json?: true
}

/** `millrace config validate`: names every document of a store, or line of a file, that is no policy. */
export const validateCommand: AddCommand = (config, environment, exit) => {
  const command = config
    .command('validate')
    .summary('check every document of a store, or a file that import reads')
    .description(
      'Reads the whole store, or a file as import does, and names all that is wrong there. Exits with 1 if anything is.',
    )
    .argument('[file]', 'path of a file of policies, or - for standard input, instead of --store')
    .addOption(storeOption())
    .addOption(jsonOption('print one line of JSON for each that is wrong'))
    .action(async (file: string | undefined, options: ValidateOptions) => {
      if (file !== undefined && options.store !== undefined)
        command.error("option '-s, --store <url>' cannot be used with a file. Expected one of both")
      const json = options.json ?? false
      if (file === undefined) await validateStore(storeIn(options, command), json, environment)
      else exit(await validateFile(file, json, environment))
    })
}

async function validateStore(url: string, json: boolean, { stdout, stderr }: Environment): Promise<void> {
  const progress = new Progress(stderr)
  let [documents, faults] = [0, 0]
  const tell = async (text: string) => {
    faults++
    progress.done()
    await print(stdout, `${text}\n`)
  }
  try {
    await atStore(url, { creates: false }, async (address) => {
      // A file store is whole or not there: it would name what is wrong first, and nothing else.
      if (address.kind === 'file') {
        const checked = checkedPolicies(address.path)
        documents = checked.documents
        for (const { key, error } of checked.faults)
          await tell(json ? inertJson({ key, error: error.message }) : inertMessage(error.message))
        return
      }
      await withStore(url, { creates: false }, async (store) => {
        for await (const page of pagesOf(store)) {
          documents += page.length
          for (const one of page)
            if (one.policy === undefined)
              await tell(json ? inertJson(lineOf(one)) : printable(`${one.key}: ${faultOf(one)}`))
          progress.show(() => `${grouped(documents)} documents read`)
        }
      })
    })
  } finally {
    progress.done()
  }
  if (faults > documents) throw new FailedOperation(`${shownUrl(url)} has no policies that can be read`)
  if (faults > 0)
    throw new FailedOperation(`${grouped(faults)} of ${grouped(documents)} documents are no policies`)
  if (!json) await print(stdout, `all ${grouped(documents)} documents are policies\n`)
}

async function validateFile(
  path: string,
  json: boolean,
  { stdin, stdout, stderr }: Environment,
): Promise<number> {
  const progress = new Progress(stderr)
  const name = path === '-' ? 'standard input' : path
  return interruptible(async (signal) => {
    try {
      const { policies, faults } = await withPolicyFile(path, { stdin, signal }, (file) =>
        checkFile(file, {
          signal,
          onProgress: (part, entries) =>
            progress.show(() => barLine(part, `checked ${grouped(entries)}`, widthOf(stderr))),
          async onFault({ line, message }) {
            progress.done()
            await print(
              stdout,
              json
                ? `${inertJson({ line, error: message })}\n`
                : `${name}:${line}: ${inertMessage(message)}\n`,
            )
          },
        }),
      )
      progress.done()
      if (faults > 0)
        throw new FailedOperation(`${errorsIn(faults, name)}, beside ${grouped(policies)} policies`)
      if (!json) await print(stdout, `all ${grouped(policies)} are policies\n`)
      return 0
    } catch (error) {
      if ((error as Error).name === 'AbortError') return INTERRUPTED
      throw error
    } finally {
      progress.done()
    }
  })
}
