import type { Command } from 'commander'
import { missingPackage } from '../config/open-store.js'
import { type Environment, MissingPackage } from '../terminal.js'

/** What the command uses of the package millrace-service, which only it needs. */
interface ServiceCommand {
  run(args: readonly string[], environment: Environment): Promise<number>
}

const SERVICE = 'millrace-service'

/** `millrace serve`: answers decisions over HTTP. The service is a package of its own, loaded here. */
export function serveCommand(program: Command, environment: Environment, exit: (code: number) => void): void {
  program
    .command('serve')
    .summary('answer decisions over HTTP')
    .description(
      'Runs an engine of the decision service. It is the package millrace-service, which has the options: see ' +
        'millrace serve --help. Example: millrace serve --limit 100/1m',
    )
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .argument('[options...]', 'options of the service')
    .action(async (_options: string[], _: object, command: Command) => {
      const { run } = await loadService<ServiceCommand>('serve', 'command')
      exit(await run(command.args, environment))
    })
}

/** A module of the service, for a command. @throws MissingPackage */
export async function loadService<T>(command: string, module: string): Promise<T> {
  try {
    return await import(`${SERVICE}/${module}`)
  } catch (error) {
    if (missingPackage(error) !== SERVICE) throw error
    const message = `${command}: the package ${SERVICE} is missing. Install it beside millrace-cli: npm install ${SERVICE}`
    throw new MissingPackage(message, { cause: error })
  }
}
