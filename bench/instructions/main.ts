/** `npm run bench:instructions`: counts instructions of servers under load. Needs valgrind. */
import { parseInstructionsArguments } from '../arguments.js'
import { measureAndPrint, runCommand } from '../command.js'

await runCommand(async (argv) => {
  const { cases, ...options } = parseInstructionsArguments(argv)
  await measureAndPrint(cases, options)
})
