import { MillraceError } from 'millrace'
import type { ConfigStore } from 'millrace/config/memory'
import { FailedOperation, grouped, type Output, Progress, print, printable, widthOf } from '../terminal.js'
import { withStore } from './open-store.js'
import { type AddCommand, prefixOption, type StoreOptions, storeIn, storeOption } from './options.js'
import { pagesOf } from './pages.js'
import { faultOf } from './policy-table.js'
import { countedBarLine } from './progress-bar.js'

interface ExportOptions extends StoreOptions {
  readonly prefix?: string
}

/** `millrace config export`: writes all policies as lines that `import` reads. */
export const exportCommand: AddCommand = (config, { stdout, stderr }) => {
  const command = config
    .command('export')
    .summary('write all policies to standard output, as import reads them')
    .description(
      'Writes a line of JSON for each policy, {"key": ..., "policy": ...}, in the order of their keys.',
    )
    .addOption(storeOption())
    .addOption(prefixOption())
    .action(async (options: ExportOptions) => {
      const progress = new Progress(stdout.isTTY ? stdout : stderr)
      // On a terminal, the policies themselves show how far it is.
      const isShown = !stdout.isTTY && stderr.isTTY === true
      let [written, faults] = [0, 0]
      const soFar = (total: number | undefined) =>
        total === undefined
          ? `${grouped(written)} policies written`
          : countedBarLine(written + faults, total, widthOf(stderr))
      try {
        await withStore(storeIn(options, command), { creates: false }, async (store) => {
          const total = isShown ? await countOf(store, options.prefix, stderr) : undefined
          for await (const page of pagesOf(store, options.prefix)) {
            const lines: string[] = []
            for (const one of page) {
              const { key, policy } = one
              if (policy !== undefined) lines.push(`${JSON.stringify({ key, policy })}\n`)
              else {
                faults++
                progress.done()
                await print(stderr, `left out: ${printable(`${key}: ${faultOf(one)}`)}\n`)
              }
            }
            written += lines.length
            await print(stdout, lines.join(''))
            if (isShown) progress.show(() => soFar(total))
          }
        })
      } finally {
        progress.done()
      }
      if (faults > 0)
        throw new FailedOperation(`${grouped(faults)} documents are no policies, and were left out`)
    })
}

/**
 * How many documents there are to export; undefined if the store can't say it. If it is down, the first page rejects as
 * well. If only the count is refused, or takes longer than a request may, the pages can be read all the same.
 */
async function countOf(store: ConfigStore, prefix = '', output: Output): Promise<number | undefined> {
  const progress = new Progress(output)
  progress.show(() => 'counting policies')
  try {
    return await store.count?.({ prefix })
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'ERR_MILLRACE_CONFIG_STORE') return undefined
    throw error
  } finally {
    progress.done()
  }
}
