import { FailedOperation, print, printable } from '../terminal.js'
import { withStore } from './open-store.js'
import { type AddCommand, policyKey, type StoreOptions, storeIn, storeOption, version } from './options.js'

interface DeleteOptions extends StoreOptions {
  readonly ifVersion?: number
}

/** `millrace config delete KEY...`: deletes policies. */
export const deleteCommand: AddCommand = (config, { stdout, stderr }) => {
  const command = config
    .command('delete')
    .summary('delete the policies of keys')
    .description(
      'Deletes the policies of exactly these keys. A prefix such as user:* is a key, too: keys below it stay.',
    )
    .argument('<key...>', 'keys', (text: string, others: string[] = []) => [...others, policyKey(text)])
    .addOption(storeOption())
    .option('--if-version <version>', 'only if the key has this version; for one key', version)
    .action(async (keys: string[], options: DeleteOptions) => {
      const url = storeIn(options, command)
      const { ifVersion } = options
      if (ifVersion !== undefined && keys.length > 1)
        command.error(`option '--if-version <version>' is given for ${keys.length} keys. Expected one key`)
      let missing = 0
      await withStore(url, { creates: false }, async (store) => {
        for (const key of keys) {
          const existed = await store.delete(key, ifVersion === undefined ? {} : { ifVersion })
          if (existed) await print(stdout, `deleted ${printable(key)}\n`)
          else {
            missing++
            await print(stderr, `${printable(key)} has no policy\n`)
          }
        }
      })
      if (missing > 0) throw new FailedOperation(`${missing} of ${keys.length} keys had no policy`)
    })
}
