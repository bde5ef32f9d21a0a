/** `npm run bench`: every case, or those named with `--case`. */
import { parseArguments } from './arguments.js'
import { measureAndPrint, runCommand } from './command.js'

await runCommand(async (argv) => {
  const { cases, quick, json } = parseArguments(argv)
  await measureAndPrint(cases, { quick, json })
})
