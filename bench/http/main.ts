/**
 * `npm run bench:http`: measures an HTTP server with a limiter against one that only sets the same headers.
 * With `--case in-situ`, a server that takes turns.
 */
import { parseHttpArguments } from '../arguments.js'
import { measureAndPrint, runCommand } from '../command.js'
import { measureInSitu } from './in-situ.js'

await runCommand(async (argv) => {
  const { case: name, ...options } = parseHttpArguments(argv)
  if (name === 'in-situ') await measureInSitu(options)
  else await measureAndPrint([name], options)
})
