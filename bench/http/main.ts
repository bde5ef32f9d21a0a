/**
 * `npm run bench:http`: measures an HTTP server with a limiter against one that only sets the same headers.
 * With `--case in-situ`, servers that change between both.
 */
import { parseHttpArguments } from '../arguments.js'
import { measureAndPrint, runCommand } from '../command.js'

await runCommand(async (argv) => {
  const { case: name, ...options } = parseHttpArguments(argv)
  await measureAndPrint([name], options)
})
