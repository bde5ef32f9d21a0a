/**
 * `npm run bench:service`: the decision service and its client. `--report` writes its page, or
 * the parts of the cases that are named with `--case`.
 */
import { parseServiceArguments } from '../arguments.js'
import { measureAndPrint, runCommand } from '../command.js'

await runCommand(async (argv) => {
  const { cases, quick, json, report } = parseServiceArguments(argv)
  const measured = await measureAndPrint(cases, { quick, json })
  if (report === undefined) return
  const { writeService } = await import('../page/write.js')
  for (const file of await writeService(measured, report)) console.error(`wrote ${file}`)
})
