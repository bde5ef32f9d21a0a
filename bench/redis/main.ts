/** `npm run bench:redis`: limiters on a Redis server that each contender starts for itself. */
import { parseRedisArguments } from '../arguments.js'
import { measureAndPrint, runCommand } from '../command.js'

await runCommand(async (argv) => {
  const { cases, ...options } = parseRedisArguments(argv)
  await measureAndPrint(cases, options)
})
