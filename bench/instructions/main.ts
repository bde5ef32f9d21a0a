/**
 * `npm run bench:instructions`: counts instructions of servers under load. Needs valgrind. `--report` writes
 * its page.
 */
import { parseInstructionsArguments } from '../arguments.js'
import { measureAndPrint, runCommand } from '../command.js'

await runCommand(async (argv) => {
  const { cases, quick, json, report } = parseInstructionsArguments(argv)
  const measured = await measureAndPrint(cases, { quick, json })
  if (!report) return
  const { writeInstructions } = await import('../page/write.js')
  for (const file of await writeInstructions(measured)) console.error(`wrote ${file}`)
})
