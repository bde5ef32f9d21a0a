/**
 * `npm run bench`: measures every case, or those named with `--case`. `--report` writes
 * docs/measurements/performance.md, or the parts of those cases in it.
 */
import { parseArguments } from './arguments.js'
import { measureAndPrint, runCommand } from './command.js'

await runCommand(async (argv) => {
  const { cases, quick, json, report } = parseArguments(argv)
  const measured = await measureAndPrint(cases, { quick, json })
  if (report === undefined) return
  const { writeSpeed } = await import('./page/write.js') // imports the chart library only when it is needed
  for (const file of await writeSpeed(measured, report)) console.error(`wrote ${file}`)
})
