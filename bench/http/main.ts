/** `npm run bench:http`: what a limiter costs an HTTP server, beside one that sets the same headers without it. */
import { parseHttpArguments } from '../arguments.js'
import { measureAndPrint, runCommand } from '../command.js'

await runCommand(async (argv) => {
  await measureAndPrint(['http'], parseHttpArguments(argv))
})
