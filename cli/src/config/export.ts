import { FailedOperation, grouped, Progress, print, printable } from '../terminal.js'
import { withStore } from './open-store.js'
import { type AddCommand, prefixOption, type StoreOptions, storeIn, storeOption } from './options.js'
import { pagesOf } from './pages.js'
import { faultOf } from './policy-table.js'

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
      let [written, faults] = [0, 0]
      try {
        await withStore(storeIn(options, command), { creates: false }, async (store) => {
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
            if (!stdout.isTTY) progress.show(() => `${grouped(written)} policies written`)
          }
        })
      } finally {
        progress.done()
      }
      if (faults > 0)
        throw new FailedOperation(`${grouped(faults)} documents are no policies, and were left out`)
    })
}
