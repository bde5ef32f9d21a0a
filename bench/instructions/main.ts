/**
 * `npm run bench:instructions`: counts instructions of servers under load. Needs valgrind. `--report` writes
 * its page, or the parts of the cases that are named with `--case`.
 */
import { parseInstructionsArguments } from '../arguments.js'
import { measureAndPrint, runCommand } from '../command.js'

await runCommand(async (argv) => {
  const { cases, quick, json, report } = parseInstructionsArguments(argv)
  const measured = await measureAndPrint(cases, { quick, json })
  if (report === undefined) return
  const { writeInstructions } = await import('../page/write.js')
  for (const file of await writeInstructions(measured, report)) console.error(`wrote ${file}`)
})
