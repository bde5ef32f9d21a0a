import { candidatesOf } from 'millrace/internal'
import { FailedOperation, inertJson, lineWidthOf, print, printable, wrapped } from '../terminal.js'
import { withStore } from './open-store.js'
import { type AddCommand, jsonOption, type StoreOptions, storeIn, storeOption } from './options.js'
import { ruleTexts } from './policy-text.js'

interface GetOptions extends StoreOptions {
  readonly exact?: true
  readonly json?: true
}

/** `millrace config get KEY`: which policy holds for a key. */
export const getCommand: AddCommand = (config, { stdout }) => {
  config
    .command('get')
    .summary('show the policy that holds for a key')
    .description(
      'Shows the policy that a limiter takes for a key, and whose it is: that of the key itself, else that of its ' +
        'longest prefix, such as user:*.',
    )
    .argument('<key>', 'the key of a client, or a prefix such as user:*')
    .addOption(storeOption())
    .option('--exact', 'only the policy of exactly this key')
    .addOption(jsonOption('print the policy as one line of JSON'))
    .action(async (key: string, options: GetOptions, command) => {
      const url = storeIn(options, command)
      if (key === '') command.error("argument '' of <key> is invalid. Expected a key of 1 or more characters")
      const keys = options.exact ? [key] : [...new Set(candidatesOf(key))]
      const found = await withStore(url, { creates: false }, (store) => store.find(keys))
      if (found === undefined) {
        const hint = options.exact ? '' : ', nor have its prefixes'
        throw new FailedOperation(`${printable(key)} has no policy${hint}`)
      }
      if (options.json) {
        await print(stdout, `${inertJson(found)}\n`)
        return
      }
      const from = found.key === key ? 'its own policy' : `the policy of ${printable(found.key)}`
      const lines = [
        `${printable(key)} has ${from}, version ${found.version}`,
        ...ruleTexts(found.policy).map((text) => `  ${text}`),
      ]
      await print(stdout, `${lines.flatMap((line) => wrapped(line, lineWidthOf(stdout))).join('\n')}\n`)
    })
}
