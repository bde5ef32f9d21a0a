import type { Command } from 'commander'
import { STORE_FORMS } from 'millrace/internal'
import { type Environment, widthOf, wrapped } from '../terminal.js'
import { checkCommand } from './check.js'
import { deleteCommand } from './delete.js'
import { exportCommand } from './export.js'
import { getCommand } from './get.js'
import { importCommand } from './import.js'
import { listCommand } from './list.js'
import { setCommand } from './set.js'
import { validateCommand } from './validate.js'

/** `millrace config`: which limit a key has, in a store that limiters use. */
export function configCommand(
  program: Command,
  environment: Environment,
  exit: (code: number) => void,
): void {
  const config = program
    .command('config')
    .summary('show and change the limits of keys in a store')
    .description(
      'Shows and changes policies: which limit a key has, in a store that limiters use while they run. Each ' +
        'subcommand takes the URL of the store.',
    )
    .helpCommand('help [command]', 'show the help of a command')
    .addHelpText('after', () => {
      const forms = STORE_FORMS.flatMap((form) => wrapped(`  ${form}`, widthOf(environment.stdout)))
      return ['', 'Stores:', ...forms].join('\n')
    })
  for (const add of [
    getCommand,
    setCommand,
    deleteCommand,
    listCommand,
    importCommand,
    exportCommand,
    validateCommand,
    checkCommand,
  ])
    add(config, environment, exit)
}
