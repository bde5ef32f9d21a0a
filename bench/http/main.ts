/**
 * `npm run bench:http`: measures an HTTP server with a limiter against one that only sets the same headers.
 */
import { parseHttpArguments } from '../arguments.js'
import { measureAndPrint, runCommand } from '../command.js'

await runCommand(async (argv) => {
  await measureAndPrint(['http'], parseHttpArguments(argv))
})
