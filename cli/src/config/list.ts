import { InvalidArgumentError, Option } from 'commander'
import { grouped, inertJson, lineWidthOf, print, printable, wrapped } from '../terminal.js'
import { withStore } from './open-store.js'
import {
  type AddCommand,
  jsonOption,
  prefixOption,
  type StoreOptions,
  storeIn,
  storeOption,
} from './options.js'
import { faultOf, type Listed, policyTable } from './policy-table.js'

interface ListOptions extends StoreOptions {
  readonly prefix?: string
  readonly limit: number
  readonly json?: true
}

const MOST = 10_000

/** `millrace config list`: a page of the policies of a store. */
export const listCommand: AddCommand = (config, { stdout }) => {
  const command = config
    .command('list')
    .summary('list policies by their keys')
    .description('Lists policies in the order of their keys. All policies of a large store: export.')
    .addOption(storeOption())
    .addOption(prefixOption())
    .addOption(new Option('-n, --limit <count>', 'the most policies').argParser(count).default(100))
    .addOption(jsonOption('print one line of JSON for each policy'))
    .action(async (options: ListOptions) => {
      const { prefix = '', limit, json } = options
      const { listed, hasMore } = await withStore(
        storeIn(options, command),
        { creates: false },
        async (store) => {
          const listed = await store.list({ prefix, limit })
          const more =
            listed.length === limit ? await store.list({ prefix, limit: 1, after: listed.at(-1)!.key }) : []
          return { listed, hasMore: more.length > 0 }
        },
      )
      if (json) {
        await print(stdout, listed.map((one) => `${inertJson(lineOf(one))}\n`).join(''))
        return
      }
      if (listed.length === 0) {
        const which = prefix === '' ? '' : ` of keys that begin with ${printable(prefix)}`
        await print(stdout, `no policies${which}\n`)
        return
      }
      const width = lineWidthOf(stdout)
      const rest = `The first ${grouped(limit)} policies. --limit lists more, export writes all.`
      const lines = [policyTable(listed, width), ...(hasMore ? wrapped(rest, width) : [])]
      await print(stdout, `${lines.join('\n')}\n`)
    })
}

/** A document as a line of JSON. */
export function lineOf(one: Listed): object {
  const { key, policy, version } = one
  return policy === undefined ? { key, error: faultOf(one) } : { key, policy, version }
}

function count(text: string): number {
  const number = Number(text)
  if (!/^\d+$/.test(text) || number < 1 || number > MOST)
    throw new InvalidArgumentError(`Expected a whole number from 1 to ${grouped(MOST)}.`)
  return number
}
