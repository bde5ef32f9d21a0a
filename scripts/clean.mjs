// Removes the folders named on the command line: what a build writes is only ever what it was built from.
import { rmSync } from 'node:fs'

for (const folder of process.argv.slice(2)) rmSync(folder, { recursive: true, force: true })
