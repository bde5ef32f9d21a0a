// Random runs of the model of leases: `node test/model/leases/main.mjs --runs 1000000 [--from 1]`.
import { parseArgs } from 'node:util'
import { randomRun } from './random.mjs'

const { values } = parseArgs({
  options: { runs: { type: 'string', default: '20000' }, from: { type: 'string', default: '1' } },
})
const [runs, from] = [Number(values.runs), Number(values.from)]
const found = { runs, from, admitted: 0, trips: 0, over: 0 }
for (let seed = from; seed < from + runs; seed++) {
  const { admitted, trips, wrong } = randomRun(seed)
  found.admitted += admitted.length
  found.trips += trips
  if (wrong === undefined) continue
  found.over++
  console.log(`run ${seed}: ${wrong}`)
}
console.log(JSON.stringify(found))
if (found.over > 0 || found.admitted === 0) process.exitCode = 1
