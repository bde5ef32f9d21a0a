// A process that opens the file, uses up the limit, and prints its clock.
import { createLimiter } from 'millrace'
import { monotonicClock } from 'millrace/internal'

const limiter = createLimiter(JSON.parse(process.argv[2]))
const admitted = Array.from({ length: 12 }, () => limiter.check('key').allowed).filter(Boolean).length
console.log(JSON.stringify({ ms: monotonicClock.now(), admitted }))
process.exit(0)
