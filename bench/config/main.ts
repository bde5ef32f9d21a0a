/** `npm run bench:config`: configuration stores, in temporary folders. */
import { parseConfigArguments } from '../arguments.js'
import { measureAndPrint, runCommand } from '../command.js'

await runCommand(async (argv) => {
  const { cases, ...options } = parseConfigArguments(argv)
  await measureAndPrint(cases, options)
})
