import type { ConfigStore, Policy } from 'millrace/config/memory'
import {
  type Environment,
  FailedOperation,
  grouped,
  helpParagraph,
  inertMessage,
  Progress,
  print,
  widthOf,
} from '../terminal.js'
import { type CheckedFile, checkFile } from './checked-file.js'
import { INTERRUPTED, interruptible } from './interrupt.js'
import { withStore } from './open-store.js'
import { type AddCommand, type StoreOptions, storeIn, storeOption } from './options.js'
import { withPolicyFile } from './policy-file.js'
import { barLine, countedBarLine } from './progress-bar.js'
import { storeAddress } from './store-url.js'

interface ImportOptions extends StoreOptions {
  readonly partial?: true
}

const FORMAT =
  'Each line is {"key": "user:1", "policy": {"limit": 100, "window": "1m"}}, or an object of several keys and their ' +
  'policies, {"user:1": {"limit": 100, "window": "1m"}, ...}, which may also go over many lines. A policy may have the plain form ' +
  '{"time_window_sec": 60, "capacity": 100, "granularity_sec": 1}. Ctrl-C ends the import after the policies under way.'

/** How many policies go to the store at once. A file of policies is written whole each time. */
const AT_ONCE = 5_000
const AT_ONCE_TO_FILE = 100_000
const MOST_PRINTED = 50

/** `millrace config import FILE`: stores the policies of a file, all or none unless `--partial`. */
export const importCommand: AddCommand = (config, environment, exit) => {
  const command = config
    .command('import')
    .summary('store the policies of a file')
    .description(
      'Checks every line of a file, plain or gzipped. Only if none is wrong it stores the policies, in place of those ' +
        'that their keys have. Other keys keep theirs.',
    )
    .argument('<file>', 'path of a file of policies, or - for standard input')
    .addOption(storeOption())
    .option(
      '--partial',
      'store the policies of the right lines even if others are wrong; the exit code is 1 then',
    )
    .addHelpText('after', () => helpParagraph(FORMAT, environment.stdout))
    .action(async (file: string, options: ImportOptions) => {
      const url = storeIn(options, command)
      storeAddress(url)
      exit(await importFile(file, url, options.partial ?? false, environment))
    })
}

async function importFile(
  path: string,
  url: string,
  isPartial: boolean,
  environment: Environment,
): Promise<number> {
  const { stdin, stdout, stderr } = environment
  const progress = new Progress(stderr)
  const name = path === '-' ? 'standard input' : path
  let checked: CheckedFile | undefined
  let written = 0
  let isWriting = false
  return interruptible(async (signal) => {
    try {
      await withPolicyFile(path, { stdin, signal }, async (file) => {
        checked = await checkFile(file, {
          signal,
          onFault: faultPrinter(name, stderr, progress),
          onProgress: (part, entries) =>
            progress.show(() => barLine(part, `checked ${grouped(entries)}`, widthOf(stderr))),
        })
        const { policies, faults } = checked
        if (faults > MOST_PRINTED) await print(stderr, `and ${grouped(faults - MOST_PRINTED)} more\n`)
        if (faults > 0 && !isPartial)
          throw new FailedOperation(`${errorsIn(faults, name)}: nothing was imported`)
        if (await file.hasChanged())
          throw new FailedOperation(`nothing was imported: ${name} has changed while it was checked`)
        await withStore(url, { creates: true }, async (store) => {
          isWriting = true
          await putAll(store, checked!, signal, (count) => {
            written += count
            progress.show(() => countedBarLine(written, policies, widthOf(stderr)))
          })
        })
      })
    } catch (error) {
      progress.done()
      if (signal.aborted && (error as Error).name === 'AbortError') return stopped(stderr, written)
      if (!isWriting) throw error
      const { policies } = checked!
      const soFar = `${grouped(written)} of ${grouped(policies)} policies were imported, and maybe some of the next`
      throw new FailedOperation(`${soFar}: ${(error as Error).message}`, { cause: error })
    } finally {
      progress.done()
    }
    const { policies, faults } = checked!
    if (written < policies) return stopped(stderr, written, policies)
    await print(stdout, `${grouped(written)} policies imported\n`)
    if (faults > 0) throw new FailedOperation(`${errorsIn(faults, name)}: what is wrong was left out`)
    return 0
  })
}

async function stopped(stderr: Environment['stderr'], written: number, policies = 0): Promise<number> {
  const what =
    written === 0
      ? 'nothing was imported'
      : `${grouped(written)} of ${grouped(policies)} policies were imported`
  await print(stderr, `millrace: stopped: ${what}\n`)
  return INTERRUPTED
}

function faultPrinter(name: string, stderr: Environment['stderr'], progress: Progress) {
  let faults = 0
  return async ({ line, message }: { line: number; message: string }) => {
    if (++faults > MOST_PRINTED) return
    progress.done()
    await print(stderr, `${name}:${line}: ${inertMessage(message)}\n`)
  }
}

export const errorsIn = (count: number, name: string): string =>
  `${grouped(count)} ${count === 1 ? 'error' : 'errors'} in ${name}`

/** Stores all policies; ends early when the signal is aborted, after the policies under way. */
async function putAll(
  store: ConfigStore,
  file: CheckedFile,
  signal: AbortSignal,
  onWritten: (count: number) => void,
): Promise<void> {
  const most = store.kind === 'file' ? AT_ONCE_TO_FILE : AT_ONCE
  let entries: { key: string; policy: Policy }[] = []
  const put = async () => {
    if (store.putMany !== undefined) await store.putMany(entries)
    else for (const { key, policy } of entries) await store.put(key, policy)
    onWritten(entries.length)
    entries = []
  }
  for await (const { key, policy } of file.all()) {
    if (signal.aborted) return
    entries.push({ key, policy })
    if (entries.length === most) await put()
  }
  if (entries.length > 0 && !signal.aborted) await put()
}
